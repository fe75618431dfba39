// Package manual has the addresses of the manual's pages, for messages that send the reader to
// one: a path within this repository leads nowhere from a user's project or from the image.
//
// hack/docs checks that each page has its section. The package reads no page.
package manual

import (
	"regexp"
	"runtime/debug"
)

// Page is a page of docs/, with the anchor of a section where one is meant.
type Page string

// The pages that messages name.
const (
	AnsibleCore  Page = "howto-ansible-core-2.19.md"
	ColdStarts   Page = "warm-runs.md#reasons-for-a-cold-start"
	Finalizers   Page = "howto-finalizers.md#a-cr-that-does-not-go"
	MissingRight Page = "howto-debug.md#a-right-is-missing"
	Watches      Page = "reference-watches.md"
)

// URL returns the address of the page as it was when this program was released; of a program
// that is no release, as it is today.
func (p Page) URL() string {
	info, _ := debug.ReadBuildInfo()
	return url(p, info)
}

var released = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

func url(p Page, info *debug.BuildInfo) string {
	version := "main"
	if info != nil && released.MatchString(info.Main.Version) {
		version = info.Main.Version
	}
	return "https://github.com/ensign-operator/ensign/blob/" + version + "/docs/" + string(p)
}
