package files

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

const (
	// maxTemplateFile is the maximum size of a file whose templates count. Others are hardly tasks.
	maxTemplateFile = 64 << 10
	// maxTemplateBytes is how long all templates together may be. Compiled, a text of usual
	// length takes 50 times its length of memory.
	maxTemplateBytes = 128 << 10
	// maxTemplateLength is the same for one template. Compiling a template takes a thousand times
	// its length.
	maxTemplateLength = 16 << 10
)

// Template is a text that runs compile.
type Template struct {
	Text string `json:"text"`
	// Expression is true for a text without delimiters, such as that of a condition.
	Expression bool `json:"expression"`
}

// Templates returns the templates of files and directories, without duplicates, up to a limit. It
// finds those that are plain to see: texts of YAML with delimiters, conditions, and files of
// template directories. Which ones a run compiles is known only then, so it may do with others,
// or with none of these. Templates leaves the rest of a path in which there is something that
// it cannot read. It leaves out texts with a backslash, which Ansible compiles in one way or another
// depending on where they stand, and those with autoescape, of which Jinja evaluates a part to
// compile them.
func Templates(paths ...string) []Template {
	found := templates{list: []Template{}, seen: map[string]bool{}}
	for _, path := range paths {
		_ = walk(path, found.read)
	}
	return found.list
}

type templates struct {
	list []Template
	size int             // of their texts
	seen map[string]bool // files
}

// read is a visitor whose only error is fs.SkipAll.
func (t *templates) read(path, name string, info fs.FileInfo) error {
	whole := filepath.Ext(path) == ".j2" || strings.Contains("/"+name, "/templates/")
	switch {
	case t.size >= maxTemplateBytes:
		return fs.SkipAll
	case info.IsDir() || info.Size() > maxTemplateFile || t.seen[path]:
		return nil
	case !whole && !slices.Contains([]string{".yml", ".yaml"}, filepath.Ext(path)):
		return nil
	}
	t.seen[path] = true
	text, _ := os.ReadFile(path) // A file that cannot be read has no templates.
	if whole {
		t.addIfDelimited(string(text))
		return nil
	}
	documents, document := yaml.NewDecoder(bytes.NewReader(text)), yaml.Node{}
	for documents.Decode(&document) == nil { // Up to the end, or to a document that is not YAML.
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
		t.add(Template{Text: strings.TrimSpace(node.Value), Expression: true})
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
	text := template.Text
	if len(text) > maxTemplateLength || strings.Contains(text, `\`) || strings.Contains(text, "autoescape") || slices.Contains(t.list, template) {
		return
	}
	if t.size += len(text); t.size <= maxTemplateBytes {
		t.list = append(t.list, template)
	}
}
