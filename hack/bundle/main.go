// Command bundle renders config/ into the files that people apply and that `ensign bundle` reads, and validates bundles
// for the Operator Lifecycle Manager. It contacts nothing, and its output depends on config/ and its flags alone.
//
//	go run . [-root ../..] [-out ../../dist] [-image ensign:dev] install|samples|validate …
//
// "install" writes install.yaml, "samples" samples.yaml. "validate" validates the directory bundle.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func main() {
	root := flag.String("root", "../..", "the repository")
	out := flag.String("out", "../../dist", "where files are written, and where bundle is")
	image := flag.String("image", "ensign:dev", "the manager's image")
	flag.Parse()
	for _, what := range flag.Args() {
		if err := run(what, *root, *out, *image); err != nil {
			fmt.Fprintln(os.Stderr, "bundle:", err)
			os.Exit(1)
		}
	}
}

func run(what, root, out, image string) error {
	switch what {
	case "install":
		return write(filepath.Join(out, "install.yaml"), root, image, "default")
	case "samples":
		return write(filepath.Join(out, "samples.yaml"), root, image, "samples", "samples/restore")
	case "validate":
		return validate(filepath.Join(out, "bundle"))
	default:
		return fmt.Errorf("%q: say install, samples or validate", what)
	}
}

// write writes the objects of directories of config/ into a file.
func write(path, root, image string, dirs ...string) error {
	text := bytes.NewBufferString("# Made from config/" + dirs[0] + " by `make build-installer`: kubectl apply -f FILE\n")
	var objects []*unstructured.Unstructured
	for _, dir := range dirs {
		more, err := rendered(root, dir, image)
		if err != nil {
			return err
		}
		objects = append(objects, more...)
	}
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil { //nolint:gosec // Files of the repository are for everybody.
		return err
	}
	wrote, _ := filepath.Abs(path) // It was just written.
	fmt.Fprintln(os.Stderr, "wrote", wrote)
	return nil
}
