package readcache

import (
	"fmt"
	"time"
)

// Bytes is what the objects take.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes()
}

// Kinds is how many kinds, or kinds in a namespace, are followed.
func (c *Cache) Kinds() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, k := range c.kinds {
		if k.informer != nil {
			n++
		}
	}
	return n
}

// bytes needs the lock.
func (c *Cache) bytes() int64 {
	var sum int64
	for _, k := range c.kinds {
		if k.informer != nil {
			k.weight.loaded.Store(k.informer.Synced())
			sum += k.weight.bytes()
		}
	}
	return sum
}

// tidy ends what nobody reads any more, and forgets what no longer matters.
func (c *Cache) tidy() {
	now := c.options.Clock.Now()
	var releases []func()
	c.mu.Lock()
	for key, k := range c.kinds {
		idle := now.Sub(k.used) >= idleTime
		switch {
		case k.informer != nil && idle:
			releases = append(releases, k.close())
		case k.informer == nil && !k.opening && idle && now.After(k.rests):
			delete(c.kinds, key)
		}
	}
	c.mu.Unlock()
	end(releases)
	c.writes.Forget()
	c.shed()
}

// shed ends what can't be followed, and then what was read least recently, until the
// rest keeps the limit.
func (c *Cache) shed() {
	var releases []func()
	c.mu.Lock()
	for _, k := range c.kinds {
		if k.hopeless() {
			reason := k.informer.Err()
			releases = append(releases, k.close())
			c.rest(k, reason)
		}
	}
	for sum := c.bytes(); sum > c.options.MaxBytes; sum = c.bytes() {
		k := c.leastRecent()
		releases = append(releases, k.close())
		c.rest(k, fmt.Errorf("all kinds together take %d bytes, and --proxy-cache-max-bytes allows %d: %w", sum, c.options.MaxBytes, errUnfit))
	}
	c.mu.Unlock()
	end(releases)
}

// leastRecent needs the lock, and a kind that is followed.
func (c *Cache) leastRecent() *kept {
	var oldest *kept
	for _, k := range c.kinds {
		if k.informer != nil && (oldest == nil || k.used.Before(oldest.used)) {
			oldest = k
		}
	}
	return oldest
}

// close forgets the informer and gives the end of its use. That is not to be called
// under the Cache's lock, which the set's holds when it begins an informer.
func (k *kept) close() (release func()) {
	release = k.release
	k.informer, k.release, k.weight = nil, nil, nil
	k.rests = time.Time{}
	return release
}

func end(releases []func()) {
	for _, release := range releases {
		release()
	}
}
