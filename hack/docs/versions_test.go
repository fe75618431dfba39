package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestVersionsOfKubernetesAgree compares what docs/versioning.md supports with what hack/controlplane builds, and with
// what the chart and the bundle refuse.
func TestVersionsOfKubernetesAgree(t *testing.T) {
	newest := first(t, "hack/controlplane/go.mod", `k8s.io/kubernetes v(1\.\d+)\.`)
	built := []string{newest}
	older, err := filepath.Glob(filepath.Join(root, "hack/controlplane/v1.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range older {
		minor := strings.TrimPrefix(filepath.Base(dir), "v")
		if _, err := os.Stat(filepath.Join(dir, "go.sum")); err != nil {
			t.Error(err)
		}
		if got := first(t, "hack/controlplane/v"+minor+"/go.mod", `k8s.io/kubernetes v(1\.\d+)\.`); got != minor {
			t.Errorf("hack/controlplane/v%s builds %s", minor, got)
		}
		built = append(built, minor)
	}
	slices.Sort(built)
	if len(built) != 3 {
		t.Errorf("hack/controlplane builds %v: want the last three minor versions", built)
	}
	if got, want := first(t, "docs/versioning.md", `\| Kubernetes \| the last three minor versions: ([^|]+) \|`), built[0]+", "+built[1]+" and "+built[2]; got != want {
		t.Errorf("docs/versioning.md supports %s, and hack/controlplane builds %s", got, want)
	}
	for file, pattern := range map[string]string{
		"charts/ensign/Chart.yaml":                    `kubeVersion: ">=(1\.\d+)\.0-0"`,
		"config/manifests/clusterserviceversion.yaml": `minKubeVersion: (1\.\d+)\.0`,
		"internal/author/scaffold/templates/project/config/manifests/clusterserviceversion.yaml.tmpl": `minKubeVersion: (1\.\d+)\.0`,
	} {
		if got := first(t, file, pattern); got != built[0] {
			t.Errorf("%s refuses what is older than %s, and docs/versioning.md supports %s", file, got, built[0])
		}
	}
}

// TestMirrorsReachTheBuildOfTheImage: what the page about clusters without the internet says of mirrors. The stages that download
// have the arguments, and make passes on what its environment names.
func TestMirrorsReachTheBuildOfTheImage(t *testing.T) {
	call := exec.CommandContext(t.Context(), "make", "--dry-run", "--no-print-directory", "-C", root, "docker-build-base")
	call.Env = append(os.Environ(), "GOPROXY=https://mirror.internal/go", "PIP_INDEX_URL=https://mirror.internal/simple", "MAKEFLAGS=")
	out, err := call.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--build-arg GOPROXY --build-arg PIP_INDEX_URL") {
		t.Errorf("got %v, %s", err, out)
	}
	for variable, command := range map[string]string{"GOPROXY": "RUN go mod download", "PIP_INDEX_URL": "RUN python3 -m pip install"} {
		stage, _, found := strings.Cut(read(t, "Dockerfile"), command)
		if stage = stage[strings.LastIndex(stage, "\nFROM "):]; !found || !strings.Contains(stage, "\nARG "+variable+"\n") {
			t.Errorf("the stage of %q does not have ARG %s before it", command, variable)
		}
	}
}
