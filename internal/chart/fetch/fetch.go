// Package fetch gets a chart from a repository or a registry, for the tools of authors. It sends
// the same requests as Helm, also credentials: Helm's getters and settings are used. Only
// chart-exec links it, which links them anyway.
//
// It does not unpack the chart, and does not look into it: package describe does.
package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/getter"
	"helm.sh/helm/v4/pkg/registry"
	"helm.sh/helm/v4/pkg/repo/v1"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// fetcher fetches one chart.
type fetcher struct {
	order.Fetch

	settings *cli.EnvSettings
	getters  getter.Providers
	registry *registry.Client
	progress io.Writer
}

// Chart fetches the archive of a chart to the file that f.To names, and writes a line to progress
// before it waits for something.
func Chart(f order.Fetch, progress io.Writer) error {
	one := fetcher{Fetch: f, settings: cli.New(), getters: getter.Getters(), progress: progress}
	options := []registry.ClientOption{registry.ClientOptCredentialsFile(one.settings.RegistryConfig), registry.ClientOptEnableCache(true)}
	if f.PlainHTTP {
		options = append(options, registry.ClientOptPlainHTTP())
	}
	var err error
	if one.registry, err = registry.NewClient(options...); err != nil {
		return fmt.Errorf("read Helm's credentials: %w", err)
	}
	data, err := one.fetch()
	if err != nil {
		return err
	}
	return os.WriteFile(f.To, data, 0o600)
}

func (f fetcher) fetch() ([]byte, error) {
	if f.Repo != "" {
		return f.fromRepository(&repo.Entry{Name: "given", URL: f.Repo}, f.Chart)
	}
	known, err := repo.LoadFile(f.settings.RepositoryConfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read Helm's list of repositories: %w", err)
	}
	if strings.Contains(f.Chart, "://") {
		return f.get(f.Chart, owner(known, f.Chart))
	}
	alias, name, _ := strings.Cut(f.Chart, "/")
	entry := known.Get(alias)
	if entry == nil {
		return nil, fmt.Errorf("there is no file or directory %s, and no repository %q in %s: add that by helm repo add %s URL, or give the repository's URL and the chart's name alone", f.Chart, alias, f.settings.RepositoryConfig, alias)
	}
	return f.fromRepository(entry, name)
}

// owner returns the repository whose URL begins that of an archive, for its credentials.
func owner(known *repo.File, archive string) *repo.Entry {
	for _, entry := range known.Repositories {
		if strings.HasPrefix(archive, strings.TrimSuffix(entry.URL, "/")+"/") {
			return entry
		}
	}
	return &repo.Entry{URL: archive}
}

// fromRepository fetches a chart that the index of a repository names, and compares it with the digest
// in the index.
func (f fetcher) fromRepository(entry *repo.Entry, name string) (_ []byte, err error) {
	cache, err := os.MkdirTemp("", "ensign-index-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
	repository, err := repo.NewChartRepository(entry, f.getters)
	if err != nil {
		return nil, err
	}
	repository.CachePath = cache
	fmt.Fprintf(f.progress, "reading the index of %s\n", entry.URL)
	file, err := repository.DownloadIndexFile()
	if err != nil {
		return nil, fmt.Errorf("%s is not a repository of charts, or cannot be reached: %w", entry.URL, err)
	}
	index, err := repo.LoadIndexFile(file)
	if err != nil {
		return nil, fmt.Errorf("the index of %s: %w", entry.URL, err)
	}
	found, err := index.Get(name, f.Version)
	if err != nil || len(found.URLs) == 0 {
		return nil, absent(index, entry.URL, name, f.Version)
	}
	archive, err := repo.ResolveReferenceURL(entry.URL, found.URLs[0])
	if err != nil {
		return nil, err
	}
	f.Version = "" // The URL has it.
	data, err := f.get(archive, entry)
	if err != nil || registry.IsOCI(archive) {
		return data, err // A registry's client has compared digests, which are not those of an index.
	}
	got := sha256.Sum256(data)
	if _, want, has := strings.Cut("sha256:"+strings.TrimPrefix(found.Digest, "sha256:"), ":"); has && want != "" && want != hex.EncodeToString(got[:]) {
		return nil, fmt.Errorf("%s does not match the index of %s: its SHA-256 digest is %x, and the index has %s", archive, entry.URL, got, want)
	}
	return data, nil
}

// absent returns the error for a chart, or a version of it, that a repository does not have.
func absent(index *repo.IndexFile, repository, name, version string) error {
	const few = 8
	versions := index.Entries[name]
	if len(versions) == 0 {
		var names []string
		for other := range index.Entries {
			if strings.Contains(other, name) || strings.Contains(name, other) {
				names = append(names, other)
			}
		}
		slices.Sort(names)
		return fmt.Errorf("the repository %s has no chart %q; it has %d others%s", repository, name, len(index.Entries), list(", among them ", names[:min(len(names), few)]))
	}
	var all []string
	for _, v := range versions[:min(len(versions), few)] {
		all = append(all, v.Version)
	}
	if version == "" {
		return fmt.Errorf("the repository %s has %q in pre-releases alone, such as %s: say which version", repository, name, all[0])
	}
	return fmt.Errorf("the repository %s has no version %q of %q that can be downloaded; the newest are %s", repository, version, name, strings.Join(all, ", "))
}

func list(before string, words []string) string {
	if len(words) == 0 {
		return ""
	}
	return before + strings.Join(words, ", ")
}

// get fetches the content of a URL, with the credentials of a repository.
func (f fetcher) get(from string, entry *repo.Entry) ([]byte, error) {
	u, err := url.Parse(from)
	if err != nil {
		return nil, err
	}
	with, err := f.getters.ByScheme(u.Scheme)
	if err != nil {
		return nil, fmt.Errorf("charts come by http, https and oci; fetch others by helm pull, and give the archive: %w", err)
	}
	if registry.IsOCI(from) {
		fmt.Fprintf(f.progress, "asking %s\n", u.Host)
		if _, u, err = f.registry.ValidateReference(from, f.Version, u); err != nil {
			return nil, hinted(err)
		}
	}
	fmt.Fprintf(f.progress, "fetching %s\n", u.Redacted())
	data, err := with.Get(u.String(), getter.WithRegistryClient(f.registry), getter.WithPlainHTTP(f.PlainHTTP), getter.WithURL(entry.URL),
		getter.WithBasicAuth(entry.Username, entry.Password), getter.WithPassCredentialsAll(entry.PassCredentialsAll),
		getter.WithTLSClientConfig(entry.CertFile, entry.KeyFile, entry.CAFile), getter.WithInsecureSkipVerifyTLS(entry.InsecureSkipTLSVerify),
		getter.WithAcceptHeader("application/gzip,application/octet-stream"))
	if err != nil {
		return nil, hinted(err) // It names the URL.
	}
	return data.Bytes(), nil
}

// hinted adds to the error of a server without TLS how to ask it.
func hinted(err error) error {
	if strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return fmt.Errorf("%w: the registry has no TLS; --chart-plain-http fetches without TLS", err)
	}
	return err
}
