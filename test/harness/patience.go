package harness

import "github.com/ensign-operator/ensign/test/harness/scratch"

// Patience ends suites that hang: see scratch.Patience.
const Patience = scratch.Patience
