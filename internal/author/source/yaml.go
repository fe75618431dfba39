package source

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/watches"
)

// maxFileBytes bounds files that are read; larger ones are not content.
const maxFileBytes = 8 << 20

// Below returns the files that FilesBelow finds.
func Below(dir string, extensions ...string) []string {
	files, _ := FilesBelow(dir, extensions...)
	return files
}

// FilesBelow returns the regular files in a directory and the directories in it, whose names have one of the
// extensions, or any if none is given. A directory that does not exist has no files. The error names the
// directories that cannot be read.
func FilesBelow(dir string, extensions ...string) (files []string, err error) {
	var errs []error
	_ = filepath.WalkDir(dir+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error { // The separator makes it read the directory behind a link.
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		case err == nil && !entry.IsDir() && (len(extensions) == 0 || slices.Contains(extensions, filepath.Ext(path))):
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				files = append(files, path)
			}
		}
		return nil
	})
	return files, errors.Join(errs...)
}

// ReadYAML returns the documents of a file.
func ReadYAML(path string) ([]*yaml.Node, *Fault) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &Fault{Position{File: path}, err.Error()}
	}
	if len(text) > maxFileBytes || isVaulted(text) {
		return nil, nil
	}
	return Parse(path, text)
}

// Parse returns the documents of a text. path names its file in the fault.
func Parse(path string, text []byte) ([]*yaml.Node, *Fault) {
	var documents []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return documents, &Fault{Position{File: path, Line: ErrorLine(err), Column: 1}, "invalid YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
		}
		documents = append(documents, document.Content...)
	}
}

// ErrorLine returns the line of which an error of yaml.v3 speaks.
func ErrorLine(err error) int {
	line, _ := watches.SyntaxError(err)
	return line
}

// Place returns the position of a node of a file.
func Place(file string, n *yaml.Node) Position { return Position{file, n.Line, n.Column} }

// Pairs yields the keys and values of a mapping; none for other nodes.
func Pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		n := follow(n)
		for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], follow(n.Content[i+1])) {
				return
			}
		}
	}
}

// Items returns the elements of a list; nil for other nodes, and not for an empty list.
func Items(n *yaml.Node) []*yaml.Node {
	if n = follow(n); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return append([]*yaml.Node{}, n.Content...)
}

// Each returns the elements of a list, and another node as the only one; none for nil.
func Each(n *yaml.Node) []*yaml.Node {
	switch n = follow(n); {
	case n == nil:
		return nil
	case n.Kind == yaml.SequenceNode:
		return n.Content
	default:
		return []*yaml.Node{n}
	}
}

// Entry returns a key of a mapping, and its value, which may be an alias; nil if the node is not a mapping or
// lacks the key.
func Entry(n *yaml.Node, name string) (key, value *yaml.Node) {
	n = follow(n)
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// Field returns the value at a path of keys; nil if there is none.
func Field(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		_, n = Entry(n, key)
	}
	return follow(n)
}

// Scalar returns the text of the scalar at a path of keys, "" for other nodes.
func Scalar(n *yaml.Node, keys ...string) string {
	if n = Field(n, keys...); n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// At returns the key or the element at a path such as spec.users[0].name, or the nearest node. Keys
// may have dots.
func At(n *yaml.Node, path string) *yaml.Node {
	const between = `.[]"`
	at := n
	for path = strings.TrimLeft(path, between); path != "" && n != nil; path = strings.TrimLeft(path, between) {
		n = follow(n)
		var key, next *yaml.Node
		after := ""
		for i := range n.Content {
			name := strconv.Itoa(i)
			if n.Kind == yaml.MappingNode {
				name = n.Content[i&^1].Value
			}
			rest, begins := strings.CutPrefix(path, name)
			if !begins || rest != "" && !strings.ContainsAny(rest[:1], between) || key != nil && len(rest) >= len(after) {
				continue
			}
			key, next, after = n.Content[i], n.Content[i], rest
			if n.Kind == yaml.MappingNode {
				key, next = n.Content[i&^1], n.Content[i|1]
			}
		}
		if key == nil {
			break
		}
		at, n, path = key, next, after
	}
	return at
}

// AllText returns the scalars of a node, one in a line.
func AllText(n *yaml.Node) string {
	n = follow(n)
	switch {
	case n == nil:
		return ""
	case n.Kind == yaml.ScalarNode:
		return n.Value + "\n"
	}
	var text strings.Builder
	for _, part := range n.Content {
		text.WriteString(AllText(part))
	}
	return text.String()
}

// True reports whether the node is a boolean that is true.
func True(n *yaml.Node) bool {
	var value bool
	n = follow(n)
	return n != nil && n.Kind == yaml.ScalarNode && n.Decode(&value) == nil && value
}

func follow(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// LastLine returns the last line of an item of a list that begins at first and has ended at end: no line with text
// in it is indented less than column.
func LastLine(lines []string, first, end, column int) int {
	last := first
	for number := first + 1; number <= end; number++ {
		text := strings.TrimLeft(lines[number-1], " ")
		if text != "" && len(lines[number-1])-len(text) < column {
			break
		}
		if text != "" {
			last = number
		}
	}
	return last
}

// children returns the nodes below n that the first element of the path means; without a
// path all.
func children(n *yaml.Node, path []string) []*yaml.Node {
	var all []*yaml.Node
	switch n.Kind {
	case yaml.SequenceNode:
		if len(path) == 0 || path[0] == reader.Element {
			return n.Content
		}
	case yaml.MappingNode:
		for key, value := range Pairs(n) {
			if len(path) == 0 || path[0] == reader.Element || key.Value == path[0] {
				all = append(all, value)
			}
		}
	}
	return all
}

func rest(path []string) []string {
	if len(path) == 0 {
		return nil
	}
	return path[1:]
}
