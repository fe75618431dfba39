package content

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxTemplates is the maximum number of templates. Compiled, each takes 4 KiB of memory.
const maxTemplates = 2000

// Template is a text that runs compile.
type Template struct {
	Text string `json:"text"`
	// Expression is true for a text without delimiters, such as that of a condition.
	Expression bool `json:"expression"`
}

// Templates returns the templates of files and directories, without duplicates. It finds those
// that are plain to see: texts of YAML with delimiters, conditions, and files of template
// directories. Which ones a run compiles is known only then, so it may do with others, or with
// none of these. Templates leaves out what cannot be read, and texts with a backslash, which Ansible
// compiles in one way or another depending on where they stand.
func Templates(paths ...string) []Template {
	found := templates{[]Template{}}
	for _, path := range paths {
		_ = walk(path, found.read)
	}
	return found.list
}

type templates struct{ list []Template }

// read is a visitor that never fails.
func (t *templates) read(path, _ string, info fs.FileInfo) error {
	whole := filepath.Ext(path) == ".j2" || filepath.Base(filepath.Dir(path)) == "templates"
	if info.IsDir() || info.Size() > maxReadBytes || !whole && !slices.Contains([]string{".yml", ".yaml"}, filepath.Ext(path)) {
		return nil
	}
	text, _ := os.ReadFile(path) // What cannot be read has no templates.
	if whole {
		t.addIfDelimited(string(text))
		return nil
	}
	documents, document := yaml.NewDecoder(bytes.NewReader(text)), yaml.Node{}
	for documents.Decode(&document) == nil { // Up to the end, or to what is no YAML.
		t.addIn(&document, "")
		document = yaml.Node{}
	}
	return nil
}

// addIn adds the templates in a node of YAML that is the value of the key.
func (t *templates) addIn(node *yaml.Node, key string) {
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue // A key.
			}
			key = node.Content[i-1].Value
		}
		t.addIn(child, key)
	}
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" || t.addIfDelimited(node.Value) {
		return
	}
	switch key {
	case "when", "until", "failed_when", "changed_when", "break_when", "that", "var":
		t.add(Template{Text: node.Value, Expression: true})
	}
}

// addIfDelimited reports whether the text has delimiters of a template.
func (t *templates) addIfDelimited(text string) bool {
	delimited := strings.Contains(text, "{{") || strings.Contains(text, "{%") || strings.Contains(text, "{#")
	if delimited {
		t.add(Template{Text: text})
	}
	return delimited
}

func (t *templates) add(template Template) {
	if len(t.list) < maxTemplates && !strings.Contains(template.Text, `\`) && !slices.Contains(t.list, template) {
		t.list = append(t.list, template)
	}
}
