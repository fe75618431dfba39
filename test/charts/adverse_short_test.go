//go:build !long

package charts

import . "github.com/onsi/ginkgo/v2"

var slowHarms []TableEntry
