package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// exported returns the comments of a Go file's exported names, and the one of its package, as
// Markdown. Each line stands where it stands in the file; all other lines are empty. A name at the
// beginning of its own comment is code: the author cannot choose that word. exported returns ""
// where there is no such comment.
func exported(source []byte) (string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	lines := make([]string, files.File(file.FileStart).LineCount())
	add := func(group *ast.CommentGroup, names ...*ast.Ident) {
		for i, text := range texts(group) {
			if i == 0 {
				text = quoted(text, names)
			}
			lines[files.Position(group.List[i].Slash).Line-1] = text
		}
	}
	add(file.Doc)
	ast.FileExports(file)
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			add(node.Doc, node.Name)
			return false
		case *ast.GenDecl:
			add(node.Doc, declared(node)...)
			return node.Tok != token.IMPORT
		case *ast.TypeSpec:
			add(node.Doc, node.Name)
			add(node.Comment)
		case *ast.ValueSpec:
			add(node.Doc, node.Names...)
			add(node.Comment)
			return false
		case *ast.Field:
			add(node.Doc, node.Names...)
			add(node.Comment)
		}
		return true
	})
	if strings.Join(lines, "") == "" {
		return "", nil
	}
	return strings.Join(lines, "\n"), nil
}

// texts returns a comment line by line, without its slashes. A line for programs, with no space after
// them or a + before its word, is empty.
func texts(group *ast.CommentGroup) []string {
	if group == nil {
		return nil
	}
	lines := make([]string, len(group.List))
	for i, comment := range group.List {
		if text, ok := strings.CutPrefix(comment.Text, "// "); ok && !strings.HasPrefix(text, "+") {
			lines[i] = text
		} else if text, ok := strings.CutPrefix(comment.Text, "//\t"); ok {
			lines[i] = "\t" + text
		}
	}
	return lines
}

// declared returns the names of a declaration without parentheses, whose comment is theirs.
func declared(decl *ast.GenDecl) []*ast.Ident {
	if decl.Lparen.IsValid() || len(decl.Specs) == 0 {
		return nil
	}
	switch spec := decl.Specs[0].(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{spec.Name}
	case *ast.ValueSpec:
		return spec.Names
	}
	return nil
}

// quoted returns text with the name at its beginning as code.
func quoted(text string, names []*ast.Ident) string {
	first, rest, _ := strings.Cut(text, " ")
	for _, name := range names {
		if strings.TrimRight(first, ",;:.") == name.Name {
			return "`" + name.Name + "`" + strings.TrimPrefix(first, name.Name) + " " + rest
		}
	}
	return text
}
