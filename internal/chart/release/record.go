package release

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/seal"
)

// Release is a revision as Helm keeps it.
type Release = helm.Release

// decode reads a record from a Secret: gzipped JSON in base64, as helm.sh/helm/v4/pkg/storage/driver
// writes it, which reads without a bound.
func decode(data []byte) (*Release, error) {
	packed, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	text, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack the record: %w", err)
	}
	if err := checkShape(text); err != nil {
		return nil, err
	}
	r := &Release{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	if r.Info == nil || r.Chart == nil || r.Chart.Metadata == nil {
		return nil, errors.New("the record has no chart or no state")
	}
	return r, nil
}

// unpack unpacks gzipped text, and returns other text as it is: Helm once kept records unpacked.
func unpack(packed []byte) ([]byte, error) {
	if !bytes.HasPrefix(packed, []byte{0x1f, 0x8b, 0x08}) {
		return packed, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxRecord+1))
	if len(text) > maxRecord {
		return nil, fmt.Errorf("it has more than %d bytes", maxRecord)
	}
	return text, err
}

// Installed reports whether the revision is the release's first except failed installations.
func Installed(r *Release) bool {
	return r.Version == 1 || !r.Info.FirstDeployed.IsZero() && r.Info.FirstDeployed.Equal(r.Info.LastDeployed)
}

// Seal sets the labels that authenticate a record of an attempt for the CR: its seal, and the seal on
// its state.
func Seal(record *Release, s order.Seal, attempt string) error {
	text, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("seal revision %d: %w", record.Version, err)
	}
	if len(text) > maxRecord { // It could not be read again.
		return tooLarge(len(text), fmt.Sprintf("unpacked, and %d MiB are read", maxRecord>>20))
	}
	if err := checkShape(text); err != nil {
		return err
	}
	stored := &Release{Labels: record.Labels} // As it is read later: numbers of the values are floats then.
	if err := json.Unmarshal(text, stored); err != nil {
		return fmt.Errorf("seal revision %d: %w", record.Version, err)
	}
	content, state, err := seals(stored, s.Owner, attempt)
	if err != nil {
		return err
	}
	if record.Labels == nil {
		record.Labels = map[string]string{}
	}
	record.Labels[order.OwnerLabel], record.Labels[order.AttemptLabel] = s.Owner.UID, attempt
	record.Labels[order.SealLabel], record.Labels[order.StateLabel] = s.Keys.Seal(content), s.Keys.Seal(state)
	return nil
}

// seals returns the texts that the two seals of a record cover. The first one covers the CR, the
// attempt, the digest, and all of the record except its state, which Helm changes, also Helm's
// command. The second one covers the state too. The record must have been decoded.
func seals(record *Release, owner order.Owner, attempt string) (content, state []byte, err error) {
	plain := *record
	plain.Info, plain.Hooks = nil, slices.Clone(record.Hooks)
	var ran []helm.HookExecution
	for i, hook := range plain.Hooks {
		if hook != nil {
			without := *hook
			without.LastRun = helm.HookExecution{}
			plain.Hooks[i], ran = &without, append(ran, hook.LastRun)
		}
	}
	content, err = json.Marshal([]any{owner, attempt, record.Labels[order.DigestLabel], plain})
	if err == nil {
		state, err = json.Marshal([]any{"state", sha256.Sum256(content), record.Info, ran})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("seal revision %d: %w", record.Version, err)
	}
	return content, state, nil
}

// verify returns an authentic record with only the labels of its seal, and with the ledger's state. If the
// ledger has none, the record's state counts if it is sealed; otherwise the attempt is pending. It returns
// nil for a record that is not of the revision's attempt for the CR.
func verify(found *Release, s order.Seal, known order.Revision) (*Release, error) {
	labels := found.Labels
	content, state, err := seals(found, s.Owner, known.Attempt)
	if err != nil || !s.Keys.Verify(labels[order.SealLabel], content) {
		return nil, err
	}
	found.Labels = map[string]string{order.OwnerLabel: s.Owner.UID, order.AttemptLabel: known.Attempt}
	if digest, given := labels[order.DigestLabel]; given {
		found.Labels[order.DigestLabel] = digest
	}
	sealed := s.Keys.Verify(labels[order.StateLabel], state)
	status := common.Status(known.Status)
	if known.Status != "" && !sealed { // Helm's command may have changed only the state.
		found.Info.Status = status
		_, state, err = seals(found, s.Owner, known.Attempt)
		sealed = err == nil && s.Keys.Verify(labels[order.StateLabel], state)
	}
	if !sealed {
		found.Info = &helm.Info{Status: cmp.Or(status, common.StatusUnknown)}
		for _, hook := range found.Hooks {
			if hook != nil {
				hook.LastRun = helm.HookExecution{}
			}
		}
	}
	found.Info.Status = cmp.Or(status, found.Info.Status)
	return found, nil
}

// KeysFor returns the keys with which the releases of a CR are sealed. They differ by kind, namespace
// and name.
func KeysFor(keys seal.Keys, owner order.Owner) seal.Keys {
	return keys.For("release", owner.Group, owner.Kind, owner.Namespace, owner.Name)
}
