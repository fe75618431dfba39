package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"
)

//go:embed all:templates
var templates embed.FS

// render executes the templates below a directory of templates/, and passes each file to
// write. The words in the paths that names has are replaced.
func render(dir string, data any, names *strings.Replacer, write func(path string, content []byte)) error {
	root := path.Join("templates", dir)
	return fs.WalkDir(templates, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := renderFile(name, data)
		if err != nil {
			return err
		}
		target := strings.TrimSuffix(strings.TrimPrefix(name, root+"/"), ".tmpl")
		write(names.Replace(target), content)
		return nil
	})
}

func renderFile(name string, data any) ([]byte, error) {
	text, err := templates.ReadFile(name)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New(name).Delims("<%", "%>").Option("missingkey=error").Funcs(template.FuncMap{"indent": indent}).Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("parse the template: %w", err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("execute the template: %w", err)
	}
	return out.Bytes(), nil
}

// indent indents every line that is not empty.
func indent(columns int, text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = strings.Repeat(" ", columns) + line
		}
	}
	return strings.Join(lines, "\n")
}
