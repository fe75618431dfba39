package describe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// Source says where a chart is.
type Source struct {
	// Chart is a directory or an archive, the URL of an archive, a reference that begins with oci://,
	// REPOSITORY/NAME as Helm knows them, or with Repo a name.
	Chart string
	// Repo is the URL of a repository.
	Repo string
	// Version chooses among the versions of a repository or registry, as helm's --version does.
	Version   string
	PlainHTTP bool
}

// fetchTimeout bounds the fetch of a chart. Helm bounds each request itself.
const fetchTimeout = 10 * time.Minute

var (
	ofRepository = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*(/[\w.-]+)+$`)
	ofArchive    = regexp.MustCompile(`(?i)^https?://.*\.t(ar\.)?gz([?#].*)?$`)
)

// Fetch returns the path of the chart: its own, or the path in dir of an archive that the program
// chart-exec fetches. The program writes the steps of its wait to progress.
func (s Source) Fetch(ctx context.Context, chartExec, dir string, progress io.Writer) (path string, err error) {
	s.Repo = strings.TrimSuffix(strings.TrimSuffix(s.Repo, "/"), "/index.yaml")
	if strings.HasPrefix(s.Repo, "oci://") {
		s.Chart, s.Repo = s.Repo+"/"+s.Chart, ""
	}
	if s.Chart, err = expanded(s.Chart); err != nil {
		return "", err
	}
	switch isFile := s.isFile(); {
	case !isFile && ofArchive.MatchString(s.Chart) && s.Version != "":
		return "", fmt.Errorf("%s is one version: leave the version %s out", s.Chart, s.Version)
	case isFile && s.Version != "":
		return "", fmt.Errorf("%s is a chart on this machine: leave the version %s out, which chooses among those of a repository or registry", s.Chart, s.Version)
	case isFile:
		return s.Chart, nil
	case s.Repo != "" && strings.Contains(s.Chart, "://"):
		return "", fmt.Errorf("%s says where the chart is, and so does the repository %s: leave one of them out", s.Chart, s.Repo)
	}
	name, _, _ := strings.Cut(filepath.Base(s.Chart), ":") // Without a tag or a digest.
	name, _, _ = strings.Cut(strings.TrimSuffix(name, ".tgz"), "@")
	to := filepath.Join(dir, name+".tgz")
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	_, err = execute(ctx, chartExec, dir, order.Order{
		Action: order.FetchChart, Fetch: order.Fetch{Chart: s.Chart, Repo: s.Repo, Version: s.Version, PlainHTTP: s.PlainHTTP, To: to},
	}, func(cmd *exec.Cmd) { cmd.Env, cmd.Stdout = nil, progress }) // Helm's own settings, and a proxy's, are in the environment.
	if err != nil {
		return "", fmt.Errorf("fetch the chart %s: %w", s.Chart, err)
	}
	return to, nil
}

// isFile reports whether the chart is on this machine. A directory that happens to have the name of
// a chart in a repository is not.
func (s Source) isFile() bool {
	if s.Repo != "" || strings.Contains(s.Chart, "://") {
		return false
	}
	_, err := os.Stat(s.Chart)
	return err == nil || !ofRepository.MatchString(s.Chart)
}

// expanded replaces a tilde that the shell did not expand, as in --chart=~/web.
func expanded(path string) (string, error) {
	rest, isHome := strings.CutPrefix(path, "~/")
	if !isHome {
		return path, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, rest), err
}

// execute has the program chart-exec carry out an order, and returns its output unless set redirects
// it.
func execute(ctx context.Context, chartExec, dir string, o order.Order, set func(*exec.Cmd)) ([]byte, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "order.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, chartExec, file)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	set(cmd)
	err = cmd.Run()
	switch exit := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &exit) && exit.ExitCode() == 1 && stderr.Len() > 0: // It says why itself.
		return nil, errors.New(strings.TrimSpace(stderr.String()))
	case err != nil:
		return nil, fmt.Errorf("%w: %s", err, firstLines(stderr.String()))
	}
	return out.Bytes(), nil
}

// firstLines returns the beginning of a text, such as a stack trace.
func firstLines(text string) string {
	const few = 3
	lines := strings.SplitN(strings.TrimSpace(text), "\n", few+1)
	return strings.Join(lines[:min(len(lines), few)], "; ")
}
