package watches

import (
	"slices"
	"testing"
)

// TestWhatAKindOfContentDeclares: everybody else asks for these and never for the kind.
func TestWhatAKindOfContentDeclares(t *testing.T) {
	for why, test := range map[string]struct {
		watch           Watch
		heading, prefix string
		has, hasNot     string
		looks           bool
	}{
		"a role":                         {Watch{Content: Content{Role: "r"}}, "Ansible Run", AnsibleAnnotations, "verbosity", "upgrade-force", false},
		"a watch of a test":              {Watch{}, "Ansible Run", AnsibleAnnotations, "verbosity", "upgrade-force", false},
		"a chart":                        {Watch{Chart: &Chart{}}, "Helm Chart", ChartAnnotations, "upgrade-force", "verbosity", true},
		"a kind of a Go program":         {Watch{Custom: &ContentKind{}}, "Content", CustomAnnotations, "paused", "verbosity", false},
		"with words and names its own":   {Watch{Custom: &ContentKind{Heading: "Manifests", AnnotationPrefix: "a.b/", Annotations: []string{"prune"}}}, "Manifests", "a.b/", "prune", "verbosity", false},
		"a kind that takes a look first": {Watch{Custom: &ContentKind{ChecksEachPeriod: true}}, "Content", CustomAnnotations, "paused", "verbosity", true},
	} {
		t.Run(why, func(t *testing.T) {
			kind, names := test.watch.ContentKind(), test.watch.Annotations()
			if kind.Heading != test.heading || kind.ChecksEachPeriod != test.looks || test.watch.AnnotationPrefix() != test.prefix {
				t.Errorf("got %+v", kind)
			}
			for _, name := range append([]string{test.has}, everyAnnotation...) {
				if !slices.Contains(names, test.prefix+name) {
					t.Errorf("%s%s means nothing; %q do", test.prefix, name, names)
				}
			}
			for _, prefix := range AnnotationPrefixes() {
				if own := test.prefix == "a.b/"; test.watch.IsKnownAnnotation(prefix+"paused") == own || test.watch.IsKnownAnnotation(prefix+"verbosity") != (prefix == AnsibleAnnotations && test.prefix == prefix) {
					t.Errorf("what means something below %s is wrong", prefix)
				}
			}
			if all := test.watch.AnnotationNames("paused"); all[0] != test.prefix+"paused" || !test.watch.IsKnownAnnotation(all[0]) {
				t.Errorf("it is paused by %q", all)
			}
			if slices.Contains(names, test.prefix+test.hasNot) {
				t.Errorf("%q have %s%s", names, test.prefix, test.hasNot)
			}
		})
	}
}
