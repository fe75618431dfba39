package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// exported returns the comments of what a Go file exports, and the one of its package, as
// Markdown. Each line stands where it stands in the file; all other lines are empty. It returns
// "" where there is no such comment.
func exported(source []byte) (string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	comments := []*ast.CommentGroup{file.Doc}
	ast.FileExports(file)
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			comments = append(comments, node.Doc)
			return false
		case *ast.GenDecl:
			comments = append(comments, node.Doc)
			return node.Tok != token.IMPORT
		case *ast.TypeSpec:
			comments = append(comments, node.Doc, node.Comment)
		case *ast.ValueSpec:
			comments = append(comments, node.Doc, node.Comment)
			return false
		case *ast.Field:
			comments = append(comments, node.Doc, node.Comment)
		}
		return true
	})
	lines := make([]string, files.File(file.FileStart).LineCount())
	for _, group := range comments {
		if group == nil {
			continue
		}
		for _, comment := range group.List {
			// What has no space after its // is for programs.
			if text, ok := strings.CutPrefix(comment.Text, "// "); ok {
				lines[files.Position(comment.Slash).Line-1] = text
			} else if text, ok := strings.CutPrefix(comment.Text, "//\t"); ok {
				lines[files.Position(comment.Slash).Line-1] = "\t" + text
			}
		}
	}
	if strings.Join(lines, "") == "" {
		return "", nil
	}
	return strings.Join(lines, "\n"), nil
}
