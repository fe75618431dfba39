// Package sitter stands in for the parsers of programming languages, which are C. Vale reads
// Markdown and plain text alone here, so nothing of this is called.
package sitter

import (
	"context"
	"errors"
)

type (
	Language struct{}
	Parser   struct{}
	Tree     struct{}
	Node     struct{}
	Point    struct{ Row, Column uint32 }
	Query    struct{}
	Capture  struct {
		Index uint32
		Node  *Node
	}
	Match  struct{ Captures []Capture }
	Cursor struct{}
)

var errNone = errors.New("this build of Vale parses no programming language")

func NewParser() *Parser                                               { return &Parser{} }
func (*Parser) SetLanguage(*Language)                                  {}
func (*Parser) ParseCtx(context.Context, *Tree, []byte) (*Tree, error) { return nil, errNone }
func (*Tree) RootNode() *Node                                          { return &Node{} }
func (*Node) Content([]byte) string                                    { return "" }
func (*Node) StartPoint() Point                                        { return Point{} }
func NewQuery([]byte, *Language) (*Query, error)                       { return nil, errNone }
func (*Query) CaptureNameForId(uint32) string                          { return "" }
func NewQueryCursor() *Cursor                                          { return &Cursor{} }
func (*Cursor) Exec(*Query, *Node)                                     {}
func (*Cursor) NextMatch() (*Match, bool)                              { return nil, false }
func (*Cursor) FilterPredicates(match *Match, _ []byte) *Match         { return match }
