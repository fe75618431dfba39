package watches

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxFileBytes is more than any set of watches needs.
const maxFileBytes = 1 << 20

// entries are the nodes of the list that the file holds.
func (r *reader) entries(path string) []*yaml.Node {
	root := r.document(path)
	if root == nil {
		return nil
	}
	const remedy = `write a list of watches, the first as "- version: v1" with kind and role or playbook below`
	list := resolved(root)
	switch {
	case list.Kind != yaml.SequenceNode:
		r.fault(root.Line, "the file holds %s; %s", shown(list), remedy)
	case len(list.Content) == 0:
		r.fault(root.Line, "the list is empty; %s", remedy)
	}
	if list.Kind != yaml.SequenceNode {
		return nil
	}
	return list.Content
}

// document parses the file. It gives nil after a fault that leaves nothing to
// look at.
func (r *reader) document(path string) *yaml.Node {
	text, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.fault(0, "there is no such file at %s; start the manager in the operator's directory or name the file with --watches-file", path)
		return nil
	case err != nil:
		r.fault(0, "cannot be read: %v", err)
		return nil
	case len(text) > maxFileBytes:
		r.fault(0, "is larger than %d bytes; move large vars into the role", maxFileBytes)
		return nil
	}
	if line := invalidUTF8(text); line > 0 {
		r.fault(line, "is not valid UTF-8; save the file as UTF-8")
		return nil
	}
	return r.single(text)
}

// single is the only document of a file that holds anything.
func (r *reader) single(text []byte) *yaml.Node {
	documents := yaml.NewDecoder(bytes.NewReader(text))
	var only *yaml.Node
	for {
		var document yaml.Node
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.syntax(err, text)
			return nil
		}
		root := document.Content[0]
		switch {
		case root.Kind == yaml.ScalarNode && root.Tag == "!!null":
		case only == nil:
			only = root
		default:
			r.fault(root.Line, "a second document begins here; put all watches into one list")
		}
	}
	if only == nil {
		r.fault(1, `the file holds no watches; write a list, the first as "- version: v1" with kind and role or playbook below`)
		return nil
	}
	if anchor := cycle(only, map[*yaml.Node]bool{}); anchor != nil {
		r.fault(anchor.Line, "the anchor %q contains itself; write its value out", anchor.Anchor)
		return nil
	}
	return only
}

// syntax reports an error of the YAML parser, which ends reading.
func (r *reader) syntax(err error, text []byte) {
	line, message := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if found := yamlLine.FindStringSubmatch(message); found != nil {
		line, _ = strconv.Atoi(found[1])
		message = found[2]
		if countsFromZero.MatchString(message) {
			line++
		}
	}
	if unknown := unknownAnchor.FindStringSubmatch(message); unknown != nil {
		before, _, _ := bytes.Cut(text, []byte("*"+unknown[1]))
		line = 1 + bytes.Count(before, []byte("\n"))
	}
	line = min(line, countLines(text)) // At the end of the file the parser may be a line ahead.
	if strings.Contains(message, "tab character") || strings.Contains(message, "cannot start any token") {
		message += "; indent with spaces, not tabs, and put values that begin with a special character into quotes"
	}
	r.fault(line, "is no YAML: %s; the rest of the file is checked once this is mended", message)
}

var (
	yamlLine = regexp.MustCompile(`^line (\d+): (.*)`)
	// countsFromZero knows the errors of yaml.v3's parser, which counts lines
	// from zero; those of its scanner count from one.
	countsFromZero = regexp.MustCompile(`^did not find expected (node content|'-' indicator|key|',' or |<)|^found (undefined tag handle|duplicate %)`)
	lineEnd        = regexp.MustCompile(`\r\n|[\n\r\x{85}\x{2028}\x{2029}]`)
	unknownAnchor  = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
)

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxFileBytes+1))
}

// countLines counts lines as YAML does, which knows more line ends than one.
func countLines(text []byte) int {
	return 1 + len(lineEnd.FindAllIndex(text, -1))
}

// invalidUTF8 is the line of the first byte that is no UTF-8, or 0.
func invalidUTF8(text []byte) int {
	for i, line := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(line) {
			return i + 1
		}
	}
	return 0
}

// cycle finds a node that contains itself by way of an alias.
func cycle(n *yaml.Node, done map[*yaml.Node]bool) *yaml.Node {
	if finished, seen := done[n]; seen {
		if finished {
			return nil
		}
		return n
	}
	done[n] = false
	children := n.Content
	if n.Kind == yaml.AliasNode {
		children = []*yaml.Node{n.Alias}
	}
	for _, child := range children {
		if found := cycle(child, done); found != nil {
			return found
		}
	}
	done[n] = true
	return nil
}
