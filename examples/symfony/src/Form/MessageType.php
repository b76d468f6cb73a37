<?php

declare(strict_types=1);

namespace App\Form;

use Symfony\Component\Form\AbstractType;
use Symfony\Component\Form\Extension\Core\Type\FileType;
use Symfony\Component\Form\Extension\Core\Type\SubmitType;
use Symfony\Component\Form\Extension\Core\Type\TextareaType;
use Symfony\Component\Form\Extension\Core\Type\TextType;
use Symfony\Component\Form\FormBuilderInterface;
use Symfony\Component\Validator\Constraints\File;
use Symfony\Component\Validator\Constraints\Length;
use Symfony\Component\Validator\Constraints\NotBlank;

final class MessageType extends AbstractType
{
    public function buildForm(FormBuilderInterface $builder, array $options): void
    {
        $builder
            ->add('name', TextType::class, ['constraints' => [new NotBlank(), new Length(max: 40)]])
            ->add('text', TextareaType::class, ['constraints' => [new NotBlank(), new Length(min: 5, max: 1000)]])
            ->add('picture', FileType::class, [
                'required' => false,
                'constraints' => [new File(maxSize: '64k', mimeTypes: ['image/png', 'image/gif'])],
            ])
            ->add('send', SubmitType::class);
    }
}
