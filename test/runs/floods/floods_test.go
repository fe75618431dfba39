package floods

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a run that prints too much", Ordered, ContinueOnFailure, func() {
	var b *bench
	BeforeAll(func(ctx context.Context) { b = newBench(ctx, true) })

	DescribeTable("has the right outcome and costs little", func(ctx context.Context, name, reason, message string) {
		if result := b.endure(ctx, name, reason, message); reason != "NoStats" {
			Expect(result.Result).To(HaveKeyWithValue("ok", int64(7)))
		}
	},
		Entry("100 MB of lines", "lines", "Successful", ""),
		Entry("millions of tiny lines", "tiny", "Successful", ""),
		Entry("a line of 100 MB", "line", "Successful", ""),
		Entry("a line of 100 MB that never ends", "unended", "Successful", ""),
		Entry("a line that opens 20 million objects", "object", "Successful", ""),
		Entry("100 MB that Ansible displays", "display", "Successful", ""),
		Entry("100 MB of errors past Ansible", "stderr", "Successful", ""),
		Entry("100 MB and no end of the run", "nostats", "NoStats", `before the run ended(?s:.*)\[ERROR\]: x+`),
		Entry("an event of 20 MB", "event", "Successful", ""),
		Entry("a failure of 20 MB, which no program of runs reports", "failed", "Failed", "unknown playbook failure"),
		Entry("a failure with 5 million lines", "listed", "Failed", "unknown playbook failure"),
		Entry("a failure with 2 million members", "members", "Failed", "unknown playbook failure"),
		Entry("a failure of 100,000 levels", "nested", "Failed", "unknown playbook failure"),
		Entry("a failure of control characters", "controls", "Failed", `\\x1b\]0;\\x00\\x07`),
		Entry("an event that is not JSON", "badjson", "Failed", "unknown playbook failure"),
		Entry("bytes that are not strings", "bytes", "NoStats", `\\x00(?s:.*)\\u202e`),
		Entry("a report of 200,000 hosts, which no program of runs makes", "hosts", "NoStats", "before the run ended"),
	)
})

var _ = Describe("a run of Ansible that prints too much", Ordered, ContinueOnFailure, func() {
	var b *bench
	BeforeAll(func(ctx context.Context) { b = newBench(ctx, false) })

	DescribeTable("has the right outcome and costs little", func(ctx context.Context, name, reason, message string) {
		b.endure(ctx, name, reason, message)
	},
		Entry("10 MB of output and a failure", "failed", "Failed", `Print 10 MB and fail`),
		Entry("150,000 lines with characters that are not shown, and a failure", "lines", "Failed", `non-zero return code`),
		Entry("bytes that are not strings, which Ansible itself refuses", "bytes", "Failed", `invalid UTF8 string`),
	)
})
