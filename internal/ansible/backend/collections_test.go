package backend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
)

func TestAWarningOfATooOldCollection(t *testing.T) {
	cases := map[string]struct {
		versions []string // in the trees, "-" for none
		tells    []string // parts of the warning
	}{
		"an old one before the environment's":      {[]string{"-", "2.4.2", "6.6.0"}, []string{`"version"="2.4.2"`, `"path"="TREE1/kubernetes/core"`, `"hides"="TREE2/kubernetes/core"`, "requirements.yml"}},
		"an old one alone":                         {[]string{"5.2.9"}, []string{`"path"="TREE0/kubernetes/core"`}},
		"an old one before another, and a new one": {[]string{"1.0.0", "2.0.0", "5.3.0"}, []string{`"path"="TREE0/kubernetes/core"`, `"hides"="TREE2/kubernetes/core"`}},
		"an old one that a new one hides":          {[]string{"6.6.0", "2.4.2"}, nil},
		"the first that does":                      {[]string{"5.3.0"}, nil},
		"one that says nothing":                    {[]string{""}, nil},
		"none":                                     {[]string{"-"}, nil},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			var trees []string
			var names []string
			for i, v := range c.versions {
				tree := filepath.Join(dir, string(rune('0'+i)))
				trees, names = append(trees, tree), append(names, tree, "TREE"+string(rune('0'+i)))
				if v == "-" {
					continue
				}
				collection := filepath.Join(tree, "kubernetes/core")
				if err := os.MkdirAll(collection, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(collection, "MANIFEST.json"), []byte(`{"collection_info": {"version": "`+v+`"}}`), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			said := ""
			warnOfOldCollection(funcr.New(func(_, line string) { said = strings.NewReplacer(names...).Replace(line) }, funcr.Options{}), trees)
			if (said != "") != (c.tells != nil) {
				t.Fatalf("said %q", said)
			}
			for _, part := range c.tells {
				if !strings.Contains(said, part) {
					t.Errorf("said %s, want %s in it", said, part)
				}
			}
			if len(c.versions) == 1 && strings.Contains(said, "hides") {
				t.Errorf("said %s, and there is no other", said)
			}
		})
	}
}
