<?php

declare(strict_types=1);

namespace Isolation;

/**
 * Objects for the generators, created above the checkpoint, so that their state is part of the
 * image.
 */
final class Boot
{
    private const RANDOM_XSLT = <<<'XSLT'
        <xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
                xmlns:math="http://exslt.org/math">
            <xsl:output method="text"/>
            <xsl:template match="/"><xsl:value-of select="math:random()"/>, <xsl:value-of
                select="math:random()"/></xsl:template>
        </xsl:stylesheet>
        XSLT;
    private const LIBC = 'int rand(void); long random(void); long lrand48(void);';
    private const GCRYPT = 'const char *gcry_check_version(const char *); void gcry_create_nonce(void *, size_t);';
    private const GNUTLS = 'int gnutls_rnd(int level, void *, size_t);';

    public readonly \Random\Engine $mt;
    public readonly \Random\Engine $pcg;
    public readonly \Random\Engine $xoshiro;
    public readonly \Random\Randomizer $randomizer;
    public readonly \PDO $sqlite;
    public readonly \FFI $libc;
    public readonly ?\FFI $gcrypt;
    public readonly ?\FFI $gnutls;
    public readonly \XSLTProcessor $xslt;
    public readonly \DOMDocument $document;

    public function __construct()
    {
        $this->mt = new \Random\Engine\Mt19937();
        $this->pcg = new \Random\Engine\PcgOneseq128XslRr64();
        $this->xoshiro = new \Random\Engine\Xoshiro256StarStar();
        $this->randomizer = new \Random\Randomizer(new \Random\Engine\Xoshiro256StarStar());
        $this->sqlite = new \PDO('sqlite::memory:');
        $this->libc = \FFI::cdef(self::LIBC);
        $this->gcrypt = self::library(self::GCRYPT, null);
        $this->gnutls = self::library(self::GNUTLS, 'libgnutls.so.30');
        $this->gcrypt?->gcry_check_version(null);
        $this->document = new \DOMDocument();
        $this->document->loadXML(self::RANDOM_XSLT);
        $this->xslt = new \XSLTProcessor();
        $this->xslt->importStylesheet($this->document);
    }

    /**
     * Opens a library. With null, functions are found as by an extension that is linked with the
     * library.
     */
    private static function library(string $functions, ?string $file): ?\FFI
    {
        try {
            return \FFI::cdef($functions, $file);
        } catch (\FFI\Exception) {
            return null;
        }
    }

    public function query(string $sql): mixed
    {
        return $this->sqlite->query($sql)->fetchColumn();
    }

    /** Returns random bytes of libgcrypt or GnuTLS. */
    public function bytes(\FFI $library): string
    {
        $bytes = $library->new('unsigned char[16]');
        if ($library === $this->gnutls) {
            $library->gnutls_rnd(0, $bytes, 16);
        } else {
            $library->gcry_create_nonce($bytes, 16);
        }

        return bin2hex(\FFI::string($bytes, 16));
    }

    /**
     * Returns the generators that this PHP supports.
     *
     * @param array<string, callable(self): mixed> $generators
     * @return array<string, callable(self): mixed>
     */
    public function available(array $generators): array
    {
        return array_filter($generators, $this->draws(...));
    }

    /** Uses each generator once above the checkpoint, so that it has state there. */
    private function draws(callable $generator): bool
    {
        try {
            return \is_scalar($generator($this));
        } catch (\Error) {
            return false;
        }
    }
}
