<?php

declare(strict_types=1);

namespace App\Repository;

use App\Entity\Note;
use App\Entity\User;
use Doctrine\ORM\EntityManagerInterface;

final class Notes
{
    public function __construct(private EntityManagerInterface $manager)
    {
    }

    /** @return list<Note> */
    public function of(User $author): array
    {
        return $this->manager->getRepository(Note::class)->findBy(['author' => $author], ['number' => 'ASC']);
    }

    public function find(User $author, int $number): ?Note
    {
        return $this->manager->getRepository(Note::class)->findOneBy(['author' => $author, 'number' => $number]);
    }

    /** Creates a note with the next number. */
    public function begin(User $author): Note
    {
        $last = $this->manager
            ->createQuery('SELECT MAX(n.number) FROM ' . Note::class . ' n WHERE n.author = :author')
            ->setParameter('author', $author)
            ->getSingleScalarResult();

        return new Note($author, (int) $last + 1);
    }

    public function add(Note $note): void
    {
        $this->manager->persist($note);
        $this->manager->flush();
    }

    public function remove(Note $note): void
    {
        $this->manager->remove($note);
        $this->manager->flush();
    }
}
