<?php

/** Does nothing. */

declare(strict_types=1);

Samovar\consume(static function (Samovar\Job ...$jobs): void {
});
