package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"path"
	"slices"
	"strings"
)

// component is a part of the release, in CycloneDX's form.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl,omitempty"`
}

// writeSBOM lists the components in a tar of a file system: Go modules of its programs, packages of
// Debian and of Python, collections of Ansible.
func writeSBOM(out io.Writer, name, version string, archive io.Reader) error {
	components, err := componentsOf(tar.NewReader(archive))
	if err != nil {
		return err
	}
	if len(components) == 0 {
		return errors.New("nothing is known of what is in this archive")
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":   map[string]any{"component": component{Type: "application", Name: name, Version: version}},
		"components": components,
	})
}

func componentsOf(archive *tar.Reader) ([]component, error) {
	found := map[component]bool{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		read := readerOf(path.Clean("/"+header.Name), header)
		if read == nil {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		for _, each := range read(text) {
			found[each] = true
		}
	}
	components := make([]component, 0, len(found))
	for each := range found {
		components = append(components, each)
	}
	slices.SortFunc(components, func(a, b component) int { return cmp.Or(cmp.Compare(a.PURL, b.PURL), cmp.Compare(a.Name, b.Name)) })
	return components, nil
}

// readerOf returns the function that reads the components of a file; nil where the file names none.
func readerOf(name string, header *tar.Header) func([]byte) []component {
	dir, base := path.Split(name)
	switch {
	case header.Typeflag != tar.TypeReg:
		return nil
	case name == "/var/lib/dpkg/status":
		return debian
	case base == "METADATA" && strings.HasSuffix(dir, ".dist-info/"):
		return python
	case base == "MANIFEST.json" && strings.Contains(dir, "/ansible_collections/"):
		return collection
	case header.Mode&0o111 != 0 && header.Size > 1<<20:
		return modules
	}
	return nil
}

// modules are those of a program of Go.
func modules(program []byte) (found []component) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil // Another program.
	}
	add := func(name, version string) {
		found = append(found, component{"library", name, version, "pkg:golang/" + name + "@" + version})
	}
	add("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		add(module.Path, module.Version)
	}
	return found
}

// debian are the packages that are installed.
func debian(status []byte) (found []component) {
	for paragraph := range strings.SplitSeq(string(status), "\n\n") {
		fields := headers(paragraph)
		if strings.HasSuffix(fields.Get("Status"), " installed") {
			name, version := fields.Get("Package"), fields.Get("Version")
			found = append(found, component{"library", name, version, fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", name, version, fields.Get("Architecture"))})
		}
	}
	return found
}

// python is a package of Python.
func python(metadata []byte) []component {
	head, _, _ := strings.Cut(string(metadata), "\n\n")
	fields := headers(head)
	name, version := fields.Get("Name"), fields.Get("Version")
	return []component{{"library", name, version, "pkg:pypi/" + strings.ToLower(strings.ReplaceAll(name, "_", "-")) + "@" + version}}
}

// headers are the lines "Name: value" of a text; those that go on, and others, are left out.
func headers(text string) textproto.MIMEHeader {
	fields := textproto.MIMEHeader{}
	for line := range strings.Lines(text) {
		if name, value, is := strings.Cut(line, ": "); is && !strings.HasPrefix(line, " ") {
			fields.Add(name, strings.TrimSpace(value))
		}
	}
	return fields
}

// collection is one of Ansible.
func collection(manifest []byte) []component {
	var file struct {
		Info struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			Version   string `json:"version"`
		} `json:"collection_info"`
	}
	if json.Unmarshal(manifest, &file) != nil || file.Info.Name == "" {
		return nil
	}
	name := file.Info.Namespace + "." + file.Info.Name
	return []component{{"library", name, file.Info.Version, fmt.Sprintf("pkg:generic/ansible-collection/%s@%s", name, file.Info.Version)}}
}
