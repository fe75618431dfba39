package harness

import "github.com/ensign-operator/ensign/test/harness/scratch"

// WaitTimeout ends suites that hang: see scratch.WaitTimeout.
const WaitTimeout = scratch.WaitTimeout
