package scaffold

// Set by the linker of a release: hack/release. Before, a project is made of what a clone builds.
var (
	// baseImage is what the images of projects are built FROM.
	baseImage = "ensign-base" //nolint:gochecknoglobals // The linker sets variables only.
	// moduleVersion is the version of Ensign's Go module; "" is none.
	moduleVersion = "" //nolint:gochecknoglobals // As above.
)

// BaseImage is what the project's image is built FROM.
func (Project) BaseImage() string { return baseImage }

// ModuleVersion is the version of Ensign that the module Repo requires.
func (Project) ModuleVersion() string {
	if moduleVersion == "" {
		return "v0.0.0"
	}
	return moduleVersion
}

// unpublished reports whether only a clone has what the module Repo requires.
func (p Project) unpublished() bool { return p.Source == "" && moduleVersion == "" }
