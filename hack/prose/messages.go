package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// messages returns the texts that a Go file gives to errors and to the log: the texts of
// errors.New, fmt.Errorf and the methods Info and Error of a logger.
func messages(source []byte) (string, error) { return literals(source, messageOf) }

// specs returns the names of a Go file's specs and subtests: the texts of Ginkgo's nodes and of t.Run.
func specs(source []byte) (string, error) { return literals(source, nameOf) }

// literals returns the texts of calls in a Go file. textOf returns which argument of a call is its
// text. Each text is on its line of the file; all other lines are empty. literals returns "" if the
// file has no such text.
func literals(source []byte, textOf func(*ast.CallExpr) (argument int, is bool)) (string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	lines := make([]string, files.File(file.FileStart).LineCount())
	ast.Inspect(file, func(node ast.Node) bool {
		call, is := node.(*ast.CallExpr)
		if !is {
			return true
		}
		if i, is := textOf(call); is && i < len(call.Args) {
			ast.Inspect(call.Args[i], func(part ast.Node) bool {
				if literal, is := part.(*ast.BasicLit); is && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil {
						number := files.Position(literal.Pos()).Line - 1
						lines[number] = strings.TrimSpace(lines[number] + " " + strings.ReplaceAll(text, "\n", " "))
					}
				}
				_, nested := part.(*ast.CallExpr)
				return !nested // It has a text of its own, or none.
			})
		}
		return true
	})
	if strings.Join(lines, "") == "" {
		return "", nil
	}
	return strings.Join(lines, "\n"), nil
}

// comments returns all comments of a Go file, each on its line, without those for programs; "" where
// there is none.
func comments(source []byte) (string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || len(file.Comments) == 0 {
		return "", err
	}
	lines := make([]string, files.File(file.FileStart).LineCount())
	names := documented(file)
	for _, group := range file.Comments {
		for i, text := range texts(group) {
			if i == 0 {
				text = quoted(text, names)
			}
			lines[files.Position(group.List[i].Slash).Line-1] = text
		}
	}
	return strings.Join(lines, "\n"), nil
}

// documented returns the names of a file's functions, methods and fields.
func documented(file *ast.File) (names []*ast.Ident) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			names = append(names, node.Name)
		case *ast.Field:
			names = append(names, node.Names...)
		}
		return true
	})
	return names
}

// nameOf returns which argument of a call is the name of a spec or a subtest.
func nameOf(call *ast.CallExpr) (argument int, is bool) {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return 0, ginkgoNode.MatchString(function.Name)
	case *ast.SelectorExpr:
		of, is := function.X.(*ast.Ident)
		return 0, is && (of.Name == "ginkgo" && ginkgoNode.MatchString(function.Sel.Name) || function.Sel.Name == "Run" && len(of.Name) == 1)
	}
	return 0, false
}

var ginkgoNode = regexp.MustCompile(`^(Describe|DescribeTable|Context|When|It|Entry|By)$`)

// messageOf returns which argument of a call is the text of an error or a log line.
func messageOf(call *ast.CallExpr) (argument int, is bool) {
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return 0, false
	}
	name := selector.Sel.Name
	if of, is := selector.X.(*ast.Ident); is && (of.Name == "errors" && name == "New" || of.Name == "fmt" && name == "Errorf") {
		return 0, true
	}
	switch name {
	case "Info":
		return 0, true
	case "Error":
		return 1, true
	}
	return 0, false
}
