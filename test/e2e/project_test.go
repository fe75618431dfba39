package e2e

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// projectWith makes the directory of an operator project from its watches.yaml
// and further files by their relative paths.
func projectWith(watches string, files map[string]string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
		Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	write("watches.yaml", watches)
	for name, content := range files {
		write(name, content)
	}
	return dir
}

// readProject reads a file of testdata/operator.
func readProject(name string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("testdata", "operator", name))
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// visible lists a directory without what its owner keeps for itself.
func visible(dir string) []string {
	GinkgoHelper()
	entries, err := os.ReadDir(dir)
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names
}
