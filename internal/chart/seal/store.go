package seal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// keyBytes is the length of a new key, and the minimum length of an existing one.
const keyBytes = 32

// Store keeps the keys in a Secret, each under its number. The key with the highest number seals. An
// added key is used from the manager's next start on. Removing a key makes its seals invalid.
type Store struct {
	// Secrets are those of the manager's namespace.
	Secrets clientv1.SecretInterface
	Name    string

	mu   sync.Mutex
	keys Keys
}

// Keys returns the keys. The first call reads the Secret, and makes it if there is none.
func (s *Store) Keys(ctx context.Context) (Keys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys != nil {
		return s.keys, nil
	}
	keys, err := s.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("the key that authenticates releases, in the Secret %q of this manager's namespace: %w", s.Name, err)
	}
	s.keys = keys
	return keys, nil
}

func (s *Store) load(ctx context.Context) (Keys, error) {
	secret, err := s.Secrets.Get(ctx, s.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = s.create(ctx)
	}
	if err != nil {
		return nil, err
	}
	return parse(secret.Data)
}

// create makes the Secret with a first key. Another replica may have been faster.
func (s *Store) create(ctx context.Context) (*corev1.Secret, error) {
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name}, Data: map[string][]byte{"1": key}}
	created, err := s.Secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return s.Secrets.Get(ctx, s.Name, metav1.GetOptions{})
	}
	return created, err
}

// parse reads the keys of a Secret, the newest first.
func parse(data map[string][]byte) (Keys, error) {
	var keys Keys
	for name, secret := range data {
		number, err := strconv.Atoi(name)
		if err != nil || number < 1 || strconv.Itoa(number) != name {
			return nil, fmt.Errorf("the entry %q is not the number of a key, such as 1", name)
		}
		if len(secret) < keyBytes {
			return nil, fmt.Errorf("key %s has %d bytes; a key has at least %d", name, len(secret), keyBytes)
		}
		keys = append(keys, Key{Number: number, Secret: secret})
	}
	if len(keys) == 0 {
		return nil, errors.New("the Secret has no key; delete the Secret, and the manager makes a new one")
	}
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(b.Number, a.Number) })
	return keys, nil
}

// Temporary returns the source of a key that is not stored, for a manager that does not know its
// namespace.
func Temporary() func(context.Context) (Keys, error) {
	once := sync.OnceValues(func() (Keys, error) {
		key := make([]byte, keyBytes)
		_, err := rand.Read(key)
		return Keys{{Number: 1, Secret: key}}, err
	})
	return func(context.Context) (Keys, error) { return once() }
}
