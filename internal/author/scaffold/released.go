package scaffold

// The linker of a release sets these: hack/release. Before, a project uses the results of a clone's
// build.
var (
	// baseImage is the image that the images of projects are built FROM.
	baseImage = "ensign-base" //nolint:gochecknoglobals // The linker sets variables only.
	// moduleVersion is the version of Ensign's Go module; "" is none.
	moduleVersion = "" //nolint:gochecknoglobals // As above.
)

// BaseImage is the image that the project's image is built FROM.
func (Project) BaseImage() string { return baseImage }

// ModuleVersion is the version of Ensign that the module Repo requires.
func (Project) ModuleVersion() string {
	if moduleVersion == "" {
		return "v0.0.0"
	}
	return moduleVersion
}

// Ref is the branch or tag of Ensign's repository that the project is tested with.
func (Project) Ref() string {
	if moduleVersion == "" {
		return "main"
	}
	return moduleVersion
}

// unpublished reports whether only a clone has the modules that the module Repo requires.
func (p Project) unpublished() bool { return p.Source == "" && moduleVersion == "" }
