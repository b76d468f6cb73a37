<?php

declare(strict_types=1);

namespace App\Entity;

use Doctrine\ORM\Mapping as ORM;
use Symfony\Component\Validator\Constraints as Assert;

/** A private note of a user on a product. Other users cannot read it. */
#[ORM\Entity]
class Note
{
    #[ORM\Id, ORM\GeneratedValue, ORM\Column]
    private ?int $id = null;

    #[ORM\ManyToOne]
    #[ORM\JoinColumn(nullable: false)]
    #[Assert\NotNull]
    public ?Product $product = null;

    #[ORM\Column(length: 200)]
    #[Assert\NotBlank]
    #[Assert\Length(min: 3, max: 200)]
    public ?string $text = null;

    /** Name, size and hash of the picture. */
    #[ORM\Column(nullable: true)]
    public ?string $picture = null;

    /** Set by the handler of App\Message\NoteWritten. */
    #[ORM\Column]
    public bool $isRead = false;

    public function __construct(
        #[ORM\ManyToOne]
        #[ORM\JoinColumn(nullable: false)]
        public User $author,
        /** From 1, for each author. */
        #[ORM\Column]
        public int $number,
    ) {
    }

    public function getId(): ?int
    {
        return $this->id;
    }
}
