// Command bundle writes what is derived from config/: dist/install.yaml, and the bundle
// for the Operator Lifecycle Manager, bundle/ with bundle.Dockerfile. It contacts
// nothing, and what it writes depends on config/ and its flags alone.
//
//	go run . [-root ../..] [-image ensign:dev] install|bundle|check
//
// "bundle" validates what it has written. "check" writes nothing: it fails where the
// committed files are not what config/ says, or are not valid.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// files are contents by their paths from the repository's root.
type files map[string][]byte

func main() {
	root := flag.String("root", "../..", "the repository")
	image := flag.String("image", "ensign:dev", "the manager's image; check always takes the default")
	flag.Parse()
	if err := run(flag.Arg(0), *root, *image); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(what, root, image string) error {
	switch what {
	case "install":
		made, err := install(root, image)
		if err != nil {
			return err
		}
		return made.write(root)
	case "bundle":
		made, err := bundle(root, image)
		if err != nil {
			return err
		}
		// What is there may have files that are not made any more.
		if err := errors.Join(os.RemoveAll(filepath.Join(root, "bundle")), made.write(root)); err != nil {
			return err
		}
		return validate(filepath.Join(root, "bundle"))
	case "check":
		return check(root)
	default:
		return fmt.Errorf("%q: say install, bundle or check", what)
	}
}

// check reports every committed file that is missing, not up to date or not derived.
func check(root string) error {
	installed, err := install(root, "ensign:dev")
	if err != nil {
		return err
	}
	made, err := bundle(root, "ensign:dev")
	if err != nil {
		return err
	}
	maps.Copy(made, installed)
	var found []error
	for _, path := range slices.Sorted(maps.Keys(made)) {
		if text, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(text) != string(made[path]) {
			found = append(found, fmt.Errorf("%s is not what config/ says: run \"make build-installer bundle\" and commit it", path))
		}
	}
	committed, err := filepath.Glob(filepath.Join(root, "bundle", "*", "*"))
	if err != nil {
		return err
	}
	for _, path := range committed {
		if name, err := filepath.Rel(root, path); err != nil || made[name] == nil {
			found = append(found, errors.Join(fmt.Errorf("%s does not come from config/: remove it", path), err))
		}
	}
	return errors.Join(append(found, validate(filepath.Join(root, "bundle")))...)
}

func (f files) write(root string) error {
	for path, text := range f {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // Files of the repository are for everybody.
			return err
		}
	}
	return nil
}
