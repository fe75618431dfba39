package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	helm "helm.sh/helm/v4/pkg/release/v1"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/seal"
)

// Release is a revision as Helm keeps it.
type Release = helm.Release

// decode reads a record from a Secret as Helm's driver writes it: JSON, packed by gzip, in
// base64. The format is that of helm.sh/helm/v4/pkg/storage/driver, which reads without a bound.
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

// unpack unpacks what gzip has packed, and returns anything else as it is: Helm has kept records
// unpacked, once.
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

// Installed reports whether the revision is the release's first: those before it were installations that
// failed.
func Installed(r *Release) bool {
	return r.Version == 1 || !r.Info.FirstDeployed.IsZero() && r.Info.FirstDeployed.Equal(r.Info.LastDeployed)
}

// Seal sets the labels by which a record is known to be the manager's: its seal, and the UID of
// the CR.
func Seal(r *Release, s order.Seal) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("seal revision %d: %w", r.Version, err)
	}
	if len(text) > maxRecord { // It could not be read any more.
		return tooLarge(len(text), fmt.Sprintf("unpacked, and %d MiB are read", maxRecord>>20))
	}
	if err := checkShape(text); err != nil {
		return err
	}
	stored := &Release{} // As it is read later: numbers of the values are floats then.
	if err := json.Unmarshal(text, stored); err != nil {
		return fmt.Errorf("seal revision %d: %w", r.Version, err)
	}
	text, err = sealed(stored, s.Owner, s.Owner.UID, r.Labels[order.DigestLabel])
	if err != nil {
		return err
	}
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	r.Labels[order.OwnerLabel], r.Labels[order.SealLabel] = s.Owner.UID, s.Keys.Seal(text)
	return nil
}

// verify reports whether the manager has sealed the record for the CR, or for a predecessor of
// its kind and name.
func verify(r *Release, s order.Seal) bool {
	text, err := sealed(r, s.Owner, r.Labels[order.OwnerLabel], r.Labels[order.DigestLabel])
	return err == nil && s.Keys.Verify(r.Labels[order.SealLabel], text)
}

// sealed returns what a seal covers: the CR, the digest, and all of the record but its state,
// which Helm changes, also at the hands of people. The record is one that was decoded.
func sealed(r *Release, owner order.Owner, uid, digest string) ([]byte, error) {
	plain := *r
	plain.Info, plain.Hooks = nil, slices.Clone(r.Hooks)
	for i, hook := range plain.Hooks {
		if hook != nil {
			without := *hook
			without.LastRun = helm.HookExecution{}
			plain.Hooks[i] = &without
		}
	}
	owner.UID = uid
	text, err := json.Marshal([]any{owner, digest, plain})
	if err != nil {
		return nil, fmt.Errorf("seal revision %d: %w", r.Version, err)
	}
	return text, nil
}

// KeysFor returns the keys with which the releases of a CR are sealed. Those of another kind,
// namespace or name have others.
func KeysFor(keys seal.Keys, owner order.Owner) seal.Keys {
	return keys.For("release", owner.Group, owner.Kind, owner.Namespace, owner.Name)
}
