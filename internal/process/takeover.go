package process

import (
	"crypto/rand"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/internal/process/rundir"
)

// Dirs has the directories of runs, and ends their processes. The zero value has none.
type Dirs struct {
	Root   *rundir.Root
	Reaper *proctree.Reaper
}

// Close unlocks the directory of runs.
func (d Dirs) Close() error {
	if d.Root == nil {
		return nil
	}
	return d.Root.Close()
}

// TakeOver opens the directory of runs, ends the processes that a killed predecessor left
// there, and then removes the files of those processes. The Reaper starts and ends those of this one.
func TakeOver(path string, log logr.Logger) (*rundir.Root, *proctree.Reaper, error) {
	var reaper *proctree.Reaper
	root, err := rundir.TakeOver(path, func(path string) {
		reaper = proctree.NewReaper(path, rand.Text())
		ended := reaper.EndAll(DefaultGrace)
		if ended.Count > 0 {
			log.Info("ended processes of runs that a killed predecessor left", "count", ended.Count)
		}
		if ended.Left > 0 {
			log.Info("cannot end all processes of runs that a killed predecessor left: the kill is forbidden, or the kernel still holds them", "count", ended.Left)
		}
	})
	return root, reaper, err
}
