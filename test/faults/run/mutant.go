package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ensign-operator/ensign/test/faults/mutation"
)

// mutantFormat is how the file of a mutant begins. Its plans are an expression of
// names as PLANS of `make faults` takes it; plans without a fault count too.
//
//	Invariant: I3
//	Plans: ^delete-retry/without/fault$
//	In a sentence, what it breaks.
//
//	--- a/…
var mutantFormat = regexp.MustCompile(`(?s)^Invariant: ((?:\b(?:I[1-9]|I10|end|runs) ?)+)\nPlans: ([^\n]+)\n(.+)$`)

// mutant is a patch of the product that breaks an invariant. The fault plans have to
// notice every one: that is the test of the plans.
type mutant struct {
	mutation.Patch

	// invariants are those that it breaks, one of which has to be seen broken.
	invariants []string
	// plans is the expression of the plans that have to notice it.
	plans string
	// breaks says what it breaks.
	breaks string
}

// loadMutants reads the mutants of the repository in root, in the order of their names.
func loadMutants(root string) ([]mutant, error) {
	patches, err := mutation.Load(filepath.Join(root, "test", "faults", "mutants"))
	var found []mutant
	errs := []error{err}
	for _, patch := range patches {
		head := mutantFormat.FindStringSubmatch(patch.Head)
		if head == nil {
			errs = append(errs, fmt.Errorf("mutant %s does not begin with lines \"Invariant: I2\", \"Plans: ^update/status-result/lost$\" and a sentence", patch.Path))
			continue
		}
		found = append(found, mutant{Patch: patch, invariants: strings.Fields(head[1]), plans: head[2], breaks: head[3]})
	}
	return found, errors.Join(errs...)
}
