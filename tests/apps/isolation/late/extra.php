<?php

/** Included by a request, never above the checkpoint. */

declare(strict_types=1);

return 'extra';
