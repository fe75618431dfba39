package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ensign-operator/ensign/internal/author/source"
)

// projectFile is the file by which a project is known, in kubebuilder's format.
const projectFile = "PROJECT"

// longestSuffix is the longest addition of config/ to the project's name.
const longestSuffix = "-leader-election"

// Project is the input of a project's templates.
type Project struct {
	// Domain ends the API groups of the project's kinds.
	Domain string `yaml:"domain"`
	// ProjectName begins the names of the objects that are installed into a cluster. The default is
	// the name of the directory.
	ProjectName string `yaml:"projectName"`
	// Repo is the module of a project with reconcilers in Go, which has kubebuilder's layout; "" for a
	// project of roles, playbooks and charts alone.
	Repo      string `yaml:"repo"`
	Resources []struct {
		Group   string `yaml:"group"`
		Version string `yaml:"version"`
		Kind    string `yaml:"kind"`
	} `yaml:"resources"`

	// Program is the name by which the reader calls this program.
	Program string `yaml:"-"`
	// Source is the directory of a clone of Ensign that the module Repo is built with.
	Source string `yaml:"-"`
	// Schema is the JSON Schema of watches.yaml; nil leaves it out.
	Schema []byte `yaml:"-"`
}

// Init returns the plan of a new project in a directory, with the kinds.
func Init(dir string, p Project, kinds ...Kind) (*Plan, error) {
	if len(kinds) > 0 && p.Domain == "" {
		p.Domain = kinds[0].domain()
	}
	named := "--project-name"
	if p.ProjectName == "" {
		named = "the directory's name, which --project-name replaces"
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("find the directory: %w", err)
		}
		p.ProjectName = strings.ToLower(filepath.Base(absolute))
	}
	if err := p.check(named); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(dir, projectFile)); err == nil {
		return nil, fmt.Errorf("there is a project here already (the file %s): create api adds kinds to it; for another project change into another directory", projectFile)
	}
	plan := &Plan{dir: dir}
	if p.Schema != nil {
		plan.create("watches.schema.json", p.Schema)
	}
	own := map[string]bool{}
	if p.Repo != "" {
		err := render("go", p, strings.NewReplacer(), func(path string, content []byte) {
			own[path] = true
			plan.create(path, content)
		})
		if err != nil {
			return nil, err
		}
		next := "go mod tidy"
		if p.unpublished() {
			next = "go mod edit -replace github.com/ensign-operator/ensign=DIR, with the directory of a clone, because this program is of no release; then go mod tidy"
		}
		plan.Notes = append(plan.Notes, "complete go.mod: "+next)
	}
	err := render("project", p, strings.NewReplacer(), func(path string, content []byte) {
		if !own[path] {
			plan.create(path, content)
		}
	})
	if err == nil {
		err = p.derive(plan)
	}
	for _, k := range kinds {
		if err == nil {
			err = k.addTo(plan)
		}
	}
	return plan, err
}

// check returns all faults. named says where the project's name comes from.
func (p Project) check(named string) error {
	var errs []error
	if p.Domain == "" {
		errs = append(errs, errors.New("--domain is missing: the API groups of the kinds end with it, as in --domain example.com"))
	} else if wrong := validation.IsDNS1123Subdomain(p.Domain); len(wrong) > 0 {
		errs = append(errs, fmt.Errorf("--domain=%q: write a DNS name in lower case, such as example.com", p.Domain))
	}
	if p.Repo != "" {
		if err := module.CheckImportPath(p.Repo); err != nil {
			errs = append(errs, fmt.Errorf("--repo=%q: write the path of a Go module, such as example.com/shop: %w", p.Repo, err))
		}
	}
	wrong := validation.IsDNS1123Label(p.ProjectName)
	if limit := validation.DNS1123LabelMaxLength - len(longestSuffix); len(p.ProjectName) > limit {
		wrong = append(wrong, "too long")
	}
	if len(wrong) > 0 {
		errs = append(errs, fmt.Errorf("%s: %q: write lower case letters, digits and hyphens, at most %d, beginning and ending with a letter or digit",
			named, p.ProjectName, validation.DNS1123LabelMaxLength-len(longestSuffix)))
	}
	return errors.Join(errs...)
}

// project reads the PROJECT file.
func (p *Plan) project() (project Project, err error) {
	text, err := p.read(projectFile)
	if errors.Is(err, fs.ErrNotExist) {
		return project, fmt.Errorf("there is no project here (no file %s): run init first, or change into the project's directory", projectFile)
	}
	if err != nil {
		return project, fmt.Errorf("read the project: %w", err)
	}
	if err := yaml.Unmarshal(text, &project); err != nil {
		return project, fmt.Errorf("%s:%d: invalid YAML; correct the file, which init and create api keep: %w", projectFile, source.ErrorLine(err), err)
	}
	if project.Domain == "" || project.ProjectName == "" {
		return project, fmt.Errorf("%s: domain and projectName are needed: add them, as in domain: example.com", projectFile)
	}
	return project, nil
}
