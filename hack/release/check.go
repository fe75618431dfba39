package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// check reports the parts of a release that do not fit together.
func check(dir, version string) error {
	images, err := imagesOf(dir)
	if err != nil {
		return err
	}
	return errors.Join(
		checkInstaller(dir, images["ensign"]),
		checkIndex(dir, version),
		checkSums(dir),
	)
}

// imagesOf reads images.txt: a name and a reference with a digest in each line.
func imagesOf(dir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "images.txt"))
	if err != nil {
		return nil, err
	}
	images := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 2 || !byDigest.MatchString(fields[1]) {
			return nil, fmt.Errorf("images.txt: %q: want a name and an image by its digest", strings.TrimSpace(line))
		}
		images[fields[0]] = fields[1]
	}
	for _, name := range []string{"ensign-base", "ensign", "ensign-bundle", "charts/ensign"} {
		if images[name] == "" {
			return nil, fmt.Errorf("images.txt does not have %s", name)
		}
	}
	return images, nil
}

var (
	byDigest = regexp.MustCompile(`^[^@\s]+@sha256:[0-9a-f]{64}$`)
	used     = regexp.MustCompile(`(?m)^\s*(?:- )?image: (\S+)$`)
)

// checkInstaller compares the images that install.yaml runs with the one of the release.
func checkInstaller(dir, image string) error {
	text, err := os.ReadFile(filepath.Join(dir, "install.yaml"))
	if err != nil {
		return err
	}
	found := used.FindAllStringSubmatch(string(text), -1)
	if len(found) == 0 {
		return errors.New("install.yaml runs no image")
	}
	for _, match := range found {
		if got := strings.Trim(match[1], `"'`); got != image {
			return fmt.Errorf("install.yaml runs %s, and the release has %s", got, image)
		}
	}
	return nil
}

// checkIndex looks for the chart in the index of the pages.
func checkIndex(dir, version string) error {
	text, err := os.ReadFile(filepath.Join(dir, "index.yaml"))
	if err != nil {
		return err
	}
	var index struct {
		Entries map[string][]struct {
			Version, Digest string
			URLs            []string
		}
	}
	if err := yaml.Unmarshal(text, &index); err != nil {
		return fmt.Errorf("index.yaml: %w", err)
	}
	name := "ensign-" + version + ".tgz"
	sum, err := sumOf(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	for _, entry := range index.Entries["ensign"] {
		if entry.Version != version {
			continue
		}
		if entry.Digest != sum {
			return fmt.Errorf("index.yaml: the chart %s has the digest %s, and the file %s", version, entry.Digest, sum)
		}
		if len(entry.URLs) != 1 || !strings.HasSuffix(entry.URLs[0], "/"+name) || !strings.HasPrefix(entry.URLs[0], "http") {
			return fmt.Errorf("index.yaml: the chart %s is at %q: want one address of %s", version, entry.URLs, name)
		}
		return nil
	}
	return fmt.Errorf("index.yaml does not have the chart in version %s", version)
}

// checkSums looks for files without a checksum, and for checksums of other files.
func checkSums(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		// The checksums themselves, their signature, and the key that it is verified with.
		if strings.HasPrefix(entry.Name(), "SHA256SUMS") || entry.Name() == "release.pub" {
			continue
		}
		sum, err := sumOf(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		if sums[entry.Name()] != sum {
			return fmt.Errorf("SHA256SUMS: %s has %s, and the file is %s", entry.Name(), sums[entry.Name()], sum)
		}
	}
	return nil
}

func sumOf(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
