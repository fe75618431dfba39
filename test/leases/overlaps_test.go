package leases

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

// The times are seconds of one leader's life; it was stopped from 10 to 20, while
// another one had a run from 12 to 21.
var _ = DescribeTable("the evidence of runs at the same time, of which a leader's that is stopped at 10 and goes on at 20",
	func(begun int, signs []int, expected types.GomegaMatcher) {
		at := func(second int) time.Time { return time.Unix(1_000_000, 0).Add(time.Duration(second) * time.Second) }
		path := filepath.Join(GinkgoT().TempDir(), "journal")
		GinkgoT().Setenv(journalVariable, path)
		for _, second := range []int{12, 21} {
			Expect(sign{CR: short, Run: "1", Replica: "successor", Begun: at(11)}.writeAt(at(second))).To(Succeed())
		}
		for _, second := range signs {
			Expect(sign{CR: short, Run: "2", Replica: "former", Begun: at(begun)}.writeAt(at(second))).To(Succeed())
		}
		j := &journal{path: path, lives: map[string]*life{}}
		found, _ := j.overlaps(map[string]time.Time{"former": at(20)})
		Expect(found).To(expected)
		Expect(os.Remove(path)).To(Succeed())
	},
	Entry("has been seen before it is stopped", 1, []int{2, 21}, BeEmpty()),
	Entry("is first seen when it goes on", 9, []int{21}, BeEmpty()),
	Entry("is begun after it goes on", 20, []int{21}, HaveLen(1)),
	Entry("is started before the other has ended, and first seen after that", 20, []int{22}, HaveLen(1)),
	Entry("goes on although it is stopped", 9, []int{9, 13}, HaveLen(1)),
)
