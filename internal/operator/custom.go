package operator

import (
	"context"

	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/pkg/content"
)

// customBackend has the watches whose engine a Go program brings.
type customBackend struct{}

func (*customBackend) claims(w Watch) bool                                  { return w.Engine != nil }
func (*customBackend) prepare(context.Context, []Watch, process.Dirs) error { return nil }
func (*customBackend) connect(*components) error                            { return nil }
func (*customBackend) keepsServer() bool                                    { return false }
func (*customBackend) close() error                                         { return nil }

// engine returns the program's own.
func (*customBackend) engine(w Watch) (content.Engine, error) { return w.Engine, nil }
