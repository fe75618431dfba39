package operator

import (
	"context"

	"github.com/ensign-operator/ensign/pkg/content"
)

// customWing has the watches whose engine a Go program brings.
type customWing struct{}

func (*customWing) claims(w Watch) bool                             { return w.Engine != nil }
func (*customWing) prepare(context.Context, []Watch, runDirs) error { return nil }
func (*customWing) connect(*components) error                       { return nil }
func (*customWing) keepsServer() bool                               { return false }
func (*customWing) close() error                                    { return nil }

// engine returns the program's own.
func (*customWing) engine(w Watch) (content.Engine, error) { return w.Engine, nil }

// digest returns what the engine says; without a word of it each CR runs once after a restart.
func (*customWing) digest(w Watch) string {
	if d, knows := w.Engine.(content.Digester); knows {
		return d.Digest()
	}
	return ""
}
