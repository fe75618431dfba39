package fetch

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	helmregistry "helm.sh/helm/v4/pkg/registry"
	"helm.sh/helm/v4/pkg/repo/v1"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// packed writes the archive of a chart, and returns its path.
func packed(t *testing.T, dir, version string) string {
	t.Helper()
	path, err := chartutil.Save(&chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "web", Version: version}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// closed serves a handler to a user with a password.
func closed(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ada" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// repository returns a repository with two versions and a pre-release of a chart, of which
// one is not what the index says.
func repository(t *testing.T) (dir string, handler http.Handler) {
	t.Helper()
	dir = t.TempDir()
	for _, version := range []string{"0.1.0", "0.1.5", "0.2.0", "1.0.0-rc1"} {
		packed(t, dir, version)
	}
	index, err := repo.IndexDirectory(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	index.SortEntries()
	index.Entries["early"] = repo.ChartVersions{{Metadata: &chart.Metadata{APIVersion: "v2", Name: "early", Version: "0.1.0-alpha"}, URLs: []string{"early.tgz"}}}
	if err := index.WriteFile(filepath.Join(dir, "index.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	scratch.Write(t, dir, map[string]string{"web-0.1.5.tgz": "something else"})
	return dir, http.FileServer(http.Dir(dir))
}

// settings gives Helm settings of its own, with a repository and the credentials of a registry.
func settings(t *testing.T, repository, registryHost string) {
	t.Helper()
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{
		"repositories.yaml": fmt.Sprintf("repositories: [{name: ours, url: %q, username: ada, password: secret}]\n", repository),
		"registry.json":     fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, registryHost, base64.StdEncoding.EncodeToString([]byte("ada:secret"))),
	})
	t.Setenv("HELM_REPOSITORY_CONFIG", filepath.Join(dir, "repositories.yaml"))
	t.Setenv("HELM_REGISTRY_CONFIG", filepath.Join(dir, "registry.json"))
	t.Setenv("DOCKER_CONFIG", dir)
}

func TestWhereAChartIsFetchedFrom(t *testing.T) {
	dir, files := repository(t)
	open, private := httptest.NewServer(files), closed(t, files)
	t.Cleanup(open.Close)
	images := closed(t, registry.New())
	host := strings.TrimPrefix(images.URL, "http://")
	settings(t, private.URL, host)
	push(t, dir, host, "0.1.0", "0.2.0+build")
	for why, test := range map[string]struct {
		fetch order.Fetch
		want  string // the version, or a part of the error
	}{
		"the newest of a repository":             {order.Fetch{Chart: "web", Repo: open.URL}, "0.2.0"},
		"a version of it":                        {order.Fetch{Chart: "web", Repo: open.URL, Version: "0.1.0"}, "0.1.0"},
		"a range of versions":                    {order.Fetch{Chart: "web", Repo: open.URL, Version: "<0.1.5"}, "0.1.0"},
		"a pre-release":                          {order.Fetch{Chart: "web", Repo: open.URL, Version: ">0.9-0"}, "1.0.0-rc1"},
		"of a repository that Helm knows":        {order.Fetch{Chart: "ours/web", Version: "0.1.0"}, "0.1.0"},
		"the URL of an archive":                  {order.Fetch{Chart: open.URL + "/web-0.1.0.tgz"}, "0.1.0"},
		"a URL in a repository that Helm knows":  {order.Fetch{Chart: private.URL + "/web-0.1.0.tgz"}, "0.1.0"},
		"the newest of a registry":               {order.Fetch{Chart: "oci://" + host + "/charts/web", PlainHTTP: true}, "0.2.0+build"},
		"a tag":                                  {order.Fetch{Chart: "oci://" + host + "/charts/web:0.1.0", PlainHTTP: true}, "0.1.0"},
		"a version with a plus in a registry":    {order.Fetch{Chart: "oci://" + host + "/charts/web", Version: "0.2.0+build", PlainHTTP: true}, "0.2.0+build"},
		"its digest is another one":              {order.Fetch{Chart: "web", Repo: open.URL, Version: "0.1.5"}, "does not match the index of " + open.URL + ":"},
		"no such version":                        {order.Fetch{Chart: "web", Repo: open.URL, Version: "7"}, `no version "7" of "web" that can be downloaded; the newest are 1.0.0-rc1, 0.2.0, 0.1.5, 0.1.0`},
		"pre-releases alone":                     {order.Fetch{Chart: "early", Repo: open.URL}, "pre-releases alone, such as 0.1.0-alpha: say which version"},
		"no such chart":                          {order.Fetch{Chart: "webs", Repo: open.URL}, `no chart "webs"; it has 2 others, among them web`},
		"no repository":                          {order.Fetch{Chart: "web", Repo: open.URL + "/charts"}, "is not a repository of charts, or cannot be reached"},
		"credentials are not for everybody":      {order.Fetch{Chart: "web", Repo: private.URL, Version: "0.1.0"}, "401"},
		"a repository that Helm does not know":   {order.Fetch{Chart: "theirs/web"}, `there is no file or directory theirs/web, and no repository "theirs" in`},
		"a scheme for which Helm needs a plugin": {order.Fetch{Chart: "s3://charts/web-0.1.0.tgz"}, "fetch others by helm pull"},
		"a registry without TLS":                 {order.Fetch{Chart: "oci://" + host + "/charts/web:0.1.0"}, "--chart-plain-http"},
		"the newest of one without TLS":          {order.Fetch{Chart: "oci://" + host + "/charts/web"}, "--chart-plain-http"},
		"nothing of the name in the registry":    {order.Fetch{Chart: "oci://" + host + "/charts/none", PlainHTTP: true}, "404"},
	} {
		t.Run(why, func(t *testing.T) {
			test.fetch.To = filepath.Join(t.TempDir(), "web.tgz")
			var progress strings.Builder
			err := Chart(test.fetch, &progress)
			if err != nil {
				if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("want an error with %q, got %v", test.want, err)
				}
				return
			}
			got, err := loader.Load(test.fetch.To)
			if err != nil || got.Metadata.Version != test.want || !strings.Contains(progress.String(), "fetching ") {
				t.Errorf("want the version %s, got %v, %v, and it said %q", test.want, got, err, progress.String())
			}
		})
	}
}

// push puts versions of the chart into a registry.
func push(t *testing.T, dir, host string, versions ...string) {
	t.Helper()
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptCredentialsFile(os.Getenv("HELM_REGISTRY_CONFIG")))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		archive, err := os.ReadFile(packed(t, dir, version))
		if err == nil {
			_, err = client.Push(archive, host+"/charts/web:"+version)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
