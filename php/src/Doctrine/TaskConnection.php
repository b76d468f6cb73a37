<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Connection;

/**
 * A Doctrine connection whose transaction belongs to the task that started it. Set it as the
 * parameter `wrapperClass`, in Symfony `wrapper_class`.
 *
 * Doctrine counts nesting levels per connection, not per task. Without this class, another task's
 * commit() would only decrease the level, report success and write nothing. Here it is refused.
 */
final class TaskConnection extends Connection
{
    /** @var \WeakReference<object>|null */
    private ?\WeakReference $owner = null;

    public function beginTransaction()
    {
        $this->letOnlyItsOwner();
        if ($this->getTransactionNestingLevel() === 0) {
            $this->owner = \WeakReference::create(Asker::now() ?? $this);
        }

        return parent::beginTransaction();
    }

    public function commit()
    {
        $this->letOnlyItsOwner();

        return parent::commit();
    }

    public function rollBack()
    {
        $this->letOnlyItsOwner();

        return parent::rollBack();
    }

    private function letOnlyItsOwner(): void
    {
        $owner = $this->owner?->get();
        if ($this->getTransactionNestingLevel() === 0 || $owner === (Asker::now() ?? $this)) {
            return;
        }
        if ($owner !== null && !Asker::isOver($owner)) {
            throw Refused::anothersTransaction();
        }
        // The owning task ended within its transaction, which was rolled back. The nesting level is
        // reset.
        $this->close();
    }
}
