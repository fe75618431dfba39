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

// maxFileBytes bounds the size of the file, generously.
const maxFileBytes = 1 << 20

const remedy = `write a list of watches, the first as "- version: v1" with kind and role or playbook below`

// EmptyList says that a file watches nothing. The file itself may be right: a Go program may
// reconcile all of its kinds in Go. A manager without any kind is of no use.
const EmptyList = "the list is empty; " + remedy

// entries reads the file and returns the nodes of its list.
func (p *parser) entries(path string) []*yaml.Node {
	root := p.readDocument(path)
	if root == nil {
		return nil
	}
	list := followAlias(root)
	if list.Kind != yaml.SequenceNode {
		p.addFault(root.Line, "the file holds %s; %s", describe(list), remedy)
		return nil
	}
	return list.Content
}

// readDocument reads the file and returns the root node of its document, nil if the file
// cannot be used.
func (p *parser) readDocument(path string) *yaml.Node {
	text, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.addFault(0, noFile+"%s", path)
		return nil
	case err != nil:
		p.addFault(0, "cannot be read: %v", err)
		return nil
	case len(text) > maxFileBytes:
		p.addFault(0, "is larger than %d bytes; move large vars into the role", maxFileBytes)
		return nil
	}
	if line := invalidUTF8(text); line > 0 {
		p.addFault(line, "is not valid UTF-8; save the file as UTF-8")
		return nil
	}
	return p.singleDocument(text)
}

// singleDocument returns the root node of the only document that is not empty.
func (p *parser) singleDocument(text []byte) *yaml.Node {
	documents := yaml.NewDecoder(bytes.NewReader(text))
	var only *yaml.Node
	for {
		var document yaml.Node
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			p.addSyntaxFault(err, text)
			return nil
		}
		root := document.Content[0]
		switch {
		case root.Kind == yaml.ScalarNode && root.Tag == "!!null":
		case only == nil:
			only = root
		default:
			p.addFault(root.Line, "a second document begins here; put all watches into one list")
		}
	}
	if only == nil {
		p.addFault(1, `the file holds no watches; write a list, the first as "- version: v1" with kind and role or playbook below`)
		return nil
	}
	if anchor := findCycle(only, map[*yaml.Node]bool{}); anchor != nil {
		p.addFault(anchor.Line, "the anchor %q contains itself; write its value out", anchor.Anchor)
		return nil
	}
	return only
}

// SyntaxError returns the line and the message of an error of yaml.v3. The line is 1 if the error
// names none. It is the line in which the list or mapping that has the fault begins, or the fault's
// own.
func SyntaxError(err error) (line int, message string) {
	line, message = 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if found := yamlLine.FindStringSubmatch(message); found != nil {
		line, _ = strconv.Atoi(found[1])
		message = found[2]
		if zeroBasedLine.MatchString(message) {
			line++
		}
	}
	return line, message
}

// addSyntaxFault adds a fault for an error of yaml.v3, with the right line.
func (p *parser) addSyntaxFault(err error, text []byte) {
	line, message := SyntaxError(err)
	if unknown := unknownAnchor.FindStringSubmatch(message); unknown != nil {
		before, _, _ := bytes.Cut(text, []byte("*"+unknown[1]))
		line = 1 + bytes.Count(before, []byte("\n"))
	}
	line = min(line, countLines(text)) // At the end of the file yaml.v3 may report one line too many.
	if strings.Contains(message, "tab character") || strings.Contains(message, "cannot start any token") {
		message += "; indent with spaces, not tabs, and put values that begin with a special character into quotes"
	}
	p.addFault(line, "invalid YAML: %s; the rest of the file is checked once this is fixed", message)
}

var (
	yamlLine = regexp.MustCompile(`(?m)^ *line (\d+): (.*)`)
	// zeroBasedLine matches the errors of yaml.v3's parser, which counts lines from zero.
	// Its scanner counts them from one.
	zeroBasedLine = regexp.MustCompile(`^did not find expected (node content|'-' indicator|key|',' or |<)|^found (undefined tag handle|duplicate %)`)
	lineEnd       = regexp.MustCompile(`\r\n|[\n\r\x{85}\x{2028}\x{2029}]`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
)

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxFileBytes+1))
}

// countLines counts lines as YAML does: it has more line breaks than \n.
func countLines(text []byte) int {
	return 1 + len(lineEnd.FindAllIndex(text, -1))
}

// invalidUTF8 returns the line of the first byte that is not valid UTF-8, or 0.
func invalidUTF8(text []byte) int {
	for i, line := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(line) {
			return i + 1
		}
	}
	return 0
}

// findCycle returns a node that contains itself through an alias, or nil. The value of a
// node in done is false while the nodes below it are visited.
func findCycle(n *yaml.Node, done map[*yaml.Node]bool) *yaml.Node {
	if finished, visited := done[n]; visited {
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
		if found := findCycle(child, done); found != nil {
			return found
		}
	}
	done[n] = true
	return nil
}
