package describe

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const metadata = "apiVersion: v2\nname: a\nversion: 0.1.0\n"

// TestOnlyTheFilesOfAChartAreRead: what is not within the chart must not end in a project.
func TestOnlyTheFilesOfAChartAreRead(t *testing.T) {
	for why, test := range map[string]struct {
		change func(dir string) error
		want   string // "" for a chart that is taken
	}{
		"a link to a file elsewhere":  {func(dir string) error { return os.Symlink("../secret", filepath.Join(dir, "values.yaml")) }, "values.yaml is a link to ../secret"},
		"a link among the templates":  {func(dir string) error { return os.Symlink("/etc/hostname", filepath.Join(dir, "templates", "a.yaml")) }, "put a copy of what it means in its place"},
		"a link to a directory":       {func(dir string) error { return os.Symlink("..", filepath.Join(dir, "files")) }, "files is a link to .."},
		"a link within the chart":     {func(dir string) error { return os.Symlink("Chart.yaml", filepath.Join(dir, "copy")) }, "copy is a link to Chart.yaml"},
		"the rules are a link":        {func(dir string) error { return os.Symlink("../secret", filepath.Join(dir, ".helmignore")) }, ".helmignore is a link"},
		"the metadata are a link":     {func(dir string) error { return relink(filepath.Join(dir, "Chart.yaml"), "../secret") }, "no regular file Chart.yaml"},
		"a FIFO, which nobody writes": {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600) }, "pipe is not a regular file"},
		"a file of 40 GiB": {func(dir string) error {
			file, err := os.Create(filepath.Join(dir, "large"))
			if err != nil {
				return err
			}
			defer file.Close()
			return file.Truncate(40 << 30) // It has no blocks; who reads it gets zeros.
		}, "large: it has more than 32 MiB"},
		"what .helmignore leaves out": {func(dir string) error {
			err := os.WriteFile(filepath.Join(dir, ".helmignore"), []byte("secret\nscratch/\n"), 0o600)
			if err != nil {
				return err
			}
			if err := os.Symlink("../secret", filepath.Join(dir, "secret")); err != nil {
				return err
			}
			if err := os.Mkdir(filepath.Join(dir, "scratch"), 0o700); err != nil {
				return err
			}
			return os.Symlink("/", filepath.Join(dir, "scratch", "root"))
		}, ""},
	} {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			scratch.Write(t, dir, map[string]string{"secret": "token: hidden\n", "a/Chart.yaml": metadata, "a/templates/x.yaml": ""})
			if err := test.change(filepath.Join(dir, "a")); err != nil {
				t.Fatal(err)
			}
			chart, err := Load(filepath.Join(dir, "a"))
			switch {
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("want an error with %q, got %v", test.want, err)
			case test.want == "" && err != nil:
				t.Error(err)
			}
			if chart == nil {
				return
			}
			for _, file := range chart.Files {
				if bytes.Contains(file.Data, []byte("hidden")) {
					t.Errorf("%s has what is not of the chart", file.Name)
				}
			}
		})
	}
}

func relink(path, target string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// TestOnlyTheFilesOfAnArchiveAreRead: an archive is as a directory, also one in another.
func TestOnlyTheFilesOfAnArchiveAreRead(t *testing.T) {
	whole := packed(t, tar.Header{Name: "a/values.yaml"}, []byte("x: 1\n"))
	link := tar.Header{Name: "a/values.yaml", Typeflag: tar.TypeSymlink, Linkname: "/root/.kube/config"}
	bomb := packed(t, tar.Header{Name: "a/zeros"}, bytes.Repeat([]byte{0}, maxChart))
	for why, test := range map[string]struct {
		archive []byte
		want    string
	}{
		"a chart":                     {whole, ""},
		"a link":                      {packed(t, link, nil), "a/values.yaml is a link to /root/.kube/config"},
		"a hard link":                 {packed(t, tar.Header{Name: "a/x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, nil), "a/x is a link to /etc/passwd"},
		"a device":                    {packed(t, tar.Header{Name: "a/x", Typeflag: tar.TypeChar}, nil), "a/x is not a regular file"},
		"a name that leads out of it": {packed(t, tar.Header{Name: "a/../../x"}, []byte("x")), `"a/../../x" leads out of the chart`},
		"a name of another system":    {packed(t, tar.Header{Name: `a\..\..\x`}, []byte("x")), "leads out of the chart"},
		"an absolute name":            {packed(t, tar.Header{Name: "/a/x"}, []byte("x")), "leads out of the chart"},
		"a bomb":                      {bomb, "it has more than 32 MiB"},
		"a link in a subchart":        {packed(t, tar.Header{Name: "a/charts/b.tgz"}, packed(t, link, nil)), "a/charts/b.tgz: a/values.yaml is a link"},
		"a bomb in a subchart":        {packed(t, tar.Header{Name: "a/charts/b.tgz"}, bomb), "a/charts/b.tgz: it has more than 32 MiB"},
		"no archive":                  {[]byte("apiVersion: v2\n"), "as helm package makes one"},
		"half an archive":             {whole[:len(whole)/2], "as helm package makes one"},
	} {
		t.Run(why, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a-0.1.0.tgz")
			scratch.Write(t, filepath.Dir(path), map[string]string{"a-0.1.0.tgz": string(test.archive)})
			_, err := Load(path)
			if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("want an error with %q, got %v", test.want, err)
			}
		})
	}
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"Chart.yaml": metadata, "charts/b.tgz": string(packed(t, link, nil))})
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "charts/b.tgz: a/values.yaml is a link") {
		t.Errorf("in a directory: got %v", err)
	}
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "neither a directory nor a regular file") {
		t.Errorf("/dev/zero: got %v", err)
	}
}

// packed returns an archive of a chart with one more entry.
func packed(t *testing.T, entry tar.Header, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	entry.Size = int64(len(data))
	for _, one := range []struct {
		header tar.Header
		data   []byte
	}{{tar.Header{Name: "a/Chart.yaml", Size: int64(len(metadata))}, []byte(metadata)}, {entry, data}} {
		one.header.Mode = 0o600
		if err := files.WriteHeader(&one.header); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write(one.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
