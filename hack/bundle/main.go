// Command bundle writes the files that are derived from config/: install.yaml, and the bundle for
// the Operator Lifecycle Manager, bundle/. It contacts nothing, and its output depends on config/
// and its flags alone.
//
//	go run . [-root ../..] [-out ../../dist] [-image ensign:dev] [-version 1.2.3] install|bundle …
//
// "bundle" validates its output.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// files are contents by their paths below the output directory.
type files map[string][]byte

func main() {
	root := flag.String("root", "../..", "the repository")
	out := flag.String("out", "../../dist", "where files are written")
	image := flag.String("image", "ensign:dev", "the manager's image")
	version := flag.String("version", "", "the bundle's version, instead of the one of config/manifests")
	flag.Parse()
	for _, what := range flag.Args() {
		if err := run(what, *root, *out, *image, *version); err != nil {
			fmt.Fprintln(os.Stderr, "bundle:", err)
			os.Exit(1)
		}
		wrote, _ := filepath.Abs(filepath.Join(*out, map[string]string{"install": "install.yaml", "bundle": "bundle"}[what])) // It was just written.
		fmt.Fprintln(os.Stderr, "wrote", wrote)
	}
}

func run(what, root, out, image, version string) error {
	switch what {
	case "install":
		made, err := install(root, image)
		if err != nil {
			return err
		}
		return made.write(out)
	case "bundle":
		made, err := bundle(root, image, version)
		if err != nil {
			return err
		}
		dir := filepath.Join(out, "bundle")
		// The directory may have files that are not made any more.
		if err := errors.Join(os.RemoveAll(dir), made.write(out)); err != nil {
			return err
		}
		return validate(dir)
	default:
		return fmt.Errorf("%q: say install or bundle", what)
	}
}

func (f files) write(dir string) error {
	for path, text := range f {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // Files of the repository are for everybody.
			return err
		}
	}
	return nil
}
