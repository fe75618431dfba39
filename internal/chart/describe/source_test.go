package describe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// TestWhatIsFetched says which charts are on this machine, with a program in the place of chart-exec.
func TestWhatIsFetched(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Chdir(home)
	scratch.Write(t, home, map[string]string{"web/Chart.yaml": "\n", "fake": "#!/bin/sh\ncat \"$1\"; echo waiting; exit 0\n", "broken": "#!/bin/sh\necho no such host >&2; exit 1\n"})
	for _, name := range []string{"fake", "broken"} {
		if err := os.Chmod(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for why, test := range map[string]struct {
		source Source
		order  string // a part of it; "" for a chart that is here
		want   string // the path, or a part of the error
	}{
		"a directory":                       {Source{Chart: "web"}, "", "web"},
		"a tilde that the shell left":       {Source{Chart: "~/web"}, "", home + "/web"},
		"a path that is not there":          {Source{Chart: "../web-1.0.0.tgz"}, "", "../web-1.0.0.tgz"},
		"a name without a repository":       {Source{Chart: "nginx"}, "", "nginx"},
		"a repository's chart of this name": {Source{Chart: "web", Repo: "http://x/index.yaml"}, `"chart":"web","repo":"http://x"`, "web.tgz"},
		"a repository that Helm knows":      {Source{Chart: "ours/nginx", Version: "1"}, `"chart":"ours/nginx","version":"1"`, "nginx.tgz"},
		"an archive elsewhere":              {Source{Chart: "https://x/web-1.0.0.tgz"}, `"chart":"https://x/web-1.0.0.tgz"`, "web-1.0.0.tgz"},
		"a registry":                        {Source{Chart: "oci://x/charts/web:1.0.0", PlainHTTP: true}, `"chart":"oci://x/charts/web:1.0.0","plainHTTP":true`, "web.tgz"},
		"a digest":                          {Source{Chart: "oci://x/web@sha256:12"}, `"chart":"oci://x/web@sha256:12"`, "web.tgz"},
		"a registry as the repository":      {Source{Chart: "web", Repo: "oci://x/charts/"}, `"chart":"oci://x/charts/web"`, "web.tgz"},
		"a version of what is here":         {Source{Chart: "web", Version: "1"}, "", "leave the version 1 out"},
		"a version of one archive":          {Source{Chart: "https://x/web-1.0.0.tgz", Version: "1"}, "", "leave the version 1 out"},
		"two places":                        {Source{Chart: "https://x/web-1.0.0.tgz", Repo: "http://x"}, "", "leave one of them out"},
	} {
		t.Run(why, func(t *testing.T) {
			var progress strings.Builder
			got, err := test.source.Fetch(t.Context(), filepath.Join(home, "fake"), t.TempDir(), &progress)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasSuffix(got, test.want) && !strings.Contains(got, test.want) || !strings.Contains(progress.String(), test.order) || (progress.Len() > 0) != (test.order != "") {
				t.Errorf("want %q by the order %q, got %q by %q", test.want, test.order, got, progress.String())
			}
		})
	}
	if _, err := (Source{Chart: "ours/web"}).Fetch(t.Context(), filepath.Join(home, "broken"), t.TempDir(), &strings.Builder{}); err == nil || err.Error() != "fetch the chart ours/web: no such host" {
		t.Errorf("got %v", err)
	}
}
