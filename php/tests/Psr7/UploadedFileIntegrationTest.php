<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use Http\Psr7Test\UploadedFileIntegrationTest as IntegrationTest;
use Samovar\Runtime\Psr7\UploadedFile;

/** Runs php-http's tests. */
final class UploadedFileIntegrationTest extends IntegrationTest
{
    public function createSubject()
    {
        $file = tempnam(getcwd(), 'tea');
        file_put_contents($file, 'tea');

        return UploadedFile::received($file, 3, UPLOAD_ERR_OK, 'tea.txt', 'text/plain');
    }
}
