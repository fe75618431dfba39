//go:build long

package charts

import . "github.com/onsi/ginkgo/v2"

// slowHarms only differ from others in what makes them slow.
var slowHarms = []TableEntry{
	Entry("a template that hangs", greeting, "hang", "Timeout", "the run took longer than its timeout"),
}
