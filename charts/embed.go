// Package charts has the Helm chart of the operator of this repository. `ensign init` writes it for
// operators of others, with their names. The links in its files/ are not part of it.
package charts

import "embed"

// Files is the directory ensign.
//
//go:embed all:ensign
var Files embed.FS
