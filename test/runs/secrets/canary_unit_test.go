package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// What the search for canaries must find, or the suite would show nothing.
var _ = DescribeTable("a canary is found", func(hide func(value string) string) {
	c := canaries{}
	for range 50 {
		value := c.plant("planted")
		Expect(c.in([]byte(hide(value)))).To(ConsistOf("planted"))
		Expect(places{"there": []byte(hide(value))}.leaks(c)).To(ConsistOf(HavePrefix("planted in there: …")))
		other := canaries{}
		other.plant("other")
		Expect(other.in([]byte(hide(value)))).To(BeEmpty())
		delete(c, "planted")
	}
},
	Entry("as it is", func(v string) string { return "before" + v + "after" }),
	Entry("cut", func(v string) string { return v[:15] + "… [cut]" }),
	Entry("without its beginning", func(v string) string { return "…" + v[15:] }),
	Entry("folded into lines", func(v string) string { return v[:14] + "\n    " + v[14:] }),
	Entry("in base64", func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) }),
	Entry("in base64 with something before it", func(v string) string { return base64.StdEncoding.EncodeToString([]byte("a" + v)) }),
	Entry("in base64 with more before it", func(v string) string { return base64.URLEncoding.EncodeToString([]byte("ab" + v + "and behind")) }),
	Entry("in hexadecimal digits", func(v string) string { return hex.EncodeToString([]byte(v)) }),
	Entry("among a lot of text", func(v string) string { return strings.Repeat("text\n", 1<<16) + v }),
)
