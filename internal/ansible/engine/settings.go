package engine

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/watches"
)

// settings are the settings that may differ from CR to CR.
type settings struct {
	maxArtifacts int // 0 keeps all
	verbosity    int
}

// settingsOf returns the CR's settings: its annotations over the watch over the
// defaults. With an error, which names every annotation that does not parse,
// those have the value that they would have without it.
func (e *Engine) settingsOf(cr *unstructured.Unstructured) (settings, error) {
	s := settings{maxArtifacts: e.Watch.MaxRunnerArtifacts, verbosity: e.Defaults.Verbosity}
	if e.Watch.Verbosity != nil {
		s.verbosity = *e.Watch.Verbosity
	}
	annotations := cr.GetAnnotations()
	return s, errors.Join(
		readInt(annotations, watches.AnsibleAnnotations+"max-runner-artifacts", bounds{0, math.MaxInt32}, &s.maxArtifacts),
		s.readVerbosity(annotations, e.Defaults.MaxVerbosity),
	)
}

func (s *settings) readVerbosity(annotations map[string]string, limit int) error {
	asked := -1
	if err := readInt(annotations, watches.AnsibleAnnotations+"verbosity", bounds{0, 7}, &asked); err != nil {
		return err
	}
	if asked >= 0 {
		s.verbosity = min(asked, limit)
	}
	return nil
}

type bounds struct{ low, high int }

func (b bounds) String() string {
	if b.high == math.MaxInt32 {
		return fmt.Sprintf("of %d or more", b.low)
	}
	return fmt.Sprintf("from %d to %d", b.low, b.high)
}

func readInt(annotations map[string]string, name string, allowed bounds, value *int) error {
	text, ok := annotations[name]
	if !ok {
		return nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < allowed.low || number > allowed.high {
		return fmt.Errorf("annotation %s: invalid number %s: write a whole number %s", name, watches.Quoted(text), allowed)
	}
	*value = number
	return nil
}
