package cpp

import sitter "github.com/smacker/go-tree-sitter"

func GetLanguage() *sitter.Language { return nil }
