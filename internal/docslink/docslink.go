// Package docslink has the addresses of the manual's pages, for messages that send the reader to
// one: a path within this repository leads nowhere from a user's project or from the image.
//
// hack/docs checks that each page has its section. The package reads no page.
package docslink

import (
	"regexp"
	"runtime/debug"
)

// Page is a page of docs/, with the anchor of a section where one is meant.
type Page string

// The pages that messages name.
const (
	Annotations  Page = "reference-annotations.md"
	AnsibleCore  Page = "howto-ansible-core-2.19.md"
	ColdStarts   Page = "warm-runs.md#reasons-for-a-cold-start"
	Finalizers   Page = "howto-finalizers.md#a-cr-stuck-in-deletion-terminating"
	MissingRight Page = "howto-debug.md#a-right-is-missing"
	Watches      Page = "reference-watches.md"
)

// version is the version of a program of a release, which the linker sets; "" if it is not known.
var version string

const module = "github.com/ensign-operator/ensign"

// URL returns the address of the page as it was when this program, or the release of Ensign that
// it is made with, was released; for any other program, as it is on the branch main.
func (p Page) URL() string { return Root() + "docs/" + string(p) }

// Root returns the address of the files of that version, with a slash at its end.
func Root() string {
	info, _ := debug.ReadBuildInfo()
	return root(version, info)
}

var released = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

func root(linked string, info *debug.BuildInfo) string {
	for _, known := range []string{linked, moduleVersion(info)} {
		if released.MatchString(known) {
			return "https://" + module + "/blob/" + known + "/"
		}
	}
	return "https://" + module + "/blob/main/"
}

// moduleVersion returns the version of Ensign's module in a program, which may be of another module.
func moduleVersion(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == module && m.Replace == nil {
			return m.Version
		}
	}
	return ""
}
