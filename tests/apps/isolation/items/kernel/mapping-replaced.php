<?php

/**
 * Shared memory that was mapped above the checkpoint, and that a request unmaps: the kernel has
 * other memory at that place at once.
 */

declare(strict_types=1);

namespace Isolation\Items;

final class Mapping
{
    private const BYTES = 77 << 12;

    public \FFI $libc;
    public \FFI\CData $at;

    public function __construct()
    {
        $this->libc = \FFI::cdef('void *mmap(void *, size_t, int, int, int, long); int munmap(void *, size_t);');
        $this->at = $this->map(null, 'green');
    }

    private function map(?\FFI\CData $at, string $tea): \FFI\CData
    {
        $made = $this->libc->mmap($at, self::BYTES, 3, 0x21, -1, 0);
        \FFI::memcpy($made, $tea, 5);

        return $made;
    }

    public function replace(): void
    {
        $this->libc->munmap($this->at, self::BYTES);
        $this->map($this->at, 'dirty');
    }

    public function tea(): string
    {
        return \FFI::string(\FFI::cast('char *', $this->at), 5);
    }
}

return [
    'boot' => static fn () => new Mapping(),
    'leak' => static fn (Mapping $mapping) => $mapping->replace(),
    'look' => static fn (Mapping $mapping) => $mapping->tea(),
    'resident' => 'kept',
    'refork' => true,
    'needs' => ['FFI'],
];
